"""Where a data set's pictures lie: files in its folder, or members of an ``images.zip`` that is read in place.

References come from data files and are not trusted: nothing outside the data set's folder can be reached, and no
archive is ever extracted.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from core.media.picture import PictureError

ARCHIVE = "images.zip"
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Location:
    """Where a reference leads: the file ``path``, or the ``member`` of the archive ``path``; ``size`` in bytes.

    The size of a member is what its archive claims; :meth:`PictureSource.read` does not rely on it.
    """

    path: Path
    size: int
    member: str | None = None


class PictureSource:
    """The pictures of one data set, or of one collection in it.

    Looked up in this order: ``root/reference``, ``collection_folder/reference``, the member of ``root/images.zip``,
    the member of ``collection_folder/images.zip``. A file or member is spelled like the reference, or with a leading
    ``images/`` less or more (archives are packed both ways); nothing else is tried. Safe to share between threads and
    forked processes.
    """

    def __init__(self, root: Path, collection_folder: Path | None = None) -> None:
        """``root`` is the data set's folder; ``collection_folder`` lies in it (else ``PictureError`` ``outside``)."""
        self._root = os.path.realpath(root)
        self._folders = [self._root]
        if collection_folder is not None:
            folder = os.path.realpath(collection_folder)
            if not self._inside(folder):
                raise PictureError("outside", f"The collection {str(collection_folder)!r} lies outside its data set.")
            if folder != self._root:
                self._folders.append(folder)
        self._lock = threading.Lock()
        self._archives: dict[str, _Archive | None] = {}

    def resolve(self, reference: str) -> Location:
        """Where the picture lies. Raises ``PictureError``: ``outside``, ``missing``, or what is wrong with a zip."""
        return self._locate(reference)[0]

    def _locate(self, reference: str) -> tuple[Location, _Archive | None]:
        _check(reference)
        for name in _spellings(reference):
            for folder in self._folders:
                path = os.path.join(folder, name)  # noqa: PTH118 (pathlib costs half the time here)
                if found := self._file(path, reference):
                    return Location(Path(found[0]), found[1]), None
        for folder in self._folders:
            archive = self._archive(folder)
            if archive is not None and (info := archive.find(reference)) is not None:
                return Location(archive.path, info.file_size, info.filename), archive
        raise PictureError(
            "missing", f"The picture {_shown(reference)} is in neither the data set's folder nor a zip there."
        )

    def size(self, reference: str) -> int:
        """Bytes of the picture's file; of a zip's member, as the archive claims. Raises like :meth:`resolve`."""
        return self.resolve(reference).size

    def read(self, reference: str, max_bytes: int) -> bytes:
        """The bytes of the picture's file. Raises like :meth:`resolve`, and ``too_large``, ``encrypted`` ..."""
        where, archive = self._locate(reference)
        if where.size > max_bytes:
            raise PictureError(
                "too_large",
                f"The picture {_shown(reference)} has {where.size:,} bytes; at most {max_bytes:,} are read.",
            )
        if archive is not None:
            return archive.read(where.member, max_bytes)
        return _read_file(where.path, reference, max_bytes)

    def _inside(self, real: str) -> bool:
        return real == self._root or real.startswith(self._root.rstrip(os.sep) + os.sep)

    def _file(self, path: str, reference: str) -> tuple[str, int] | None:
        """The real path and size of a regular file, ``None`` where there is none; ``outside`` for anything odd."""
        try:
            # Only what lies below the (real) root can be a link, so a few lstats replace a realpath.
            step = self._root
            for part in path[len(self._root) :].split("/"):
                step = f"{step}/{part}" if part else step
                status = os.lstat(step)
                if stat.S_ISLNK(status.st_mode):
                    path = os.path.realpath(path)
                    if not self._inside(path):
                        raise PictureError(
                            "outside",
                            f"The picture {_shown(reference)} is, or lies behind, a link out of its data set.",
                        )
                    status = os.stat(path)  # noqa: PTH116
                    break
        except PermissionError:
            raise PictureError(
                "missing", f"The picture {_shown(reference)} may not be read: permission denied."
            ) from None
        except (OSError, ValueError):  # not there, a file where a folder should be, a name no file can have
            return None
        if stat.S_ISDIR(status.st_mode):
            return None
        if not stat.S_ISREG(status.st_mode):
            raise PictureError("outside", f"The picture {_shown(reference)} is not a regular file.")
        return path, status.st_size

    def _archive(self, folder: str) -> _Archive | None:
        with self._lock:
            if folder not in self._archives:
                found = self._file(f"{folder}/{ARCHIVE}", ARCHIVE)
                shown = os.path.relpath(f"{folder}/{ARCHIVE}", self._root)
                self._archives[folder] = _Archive(Path(found[0]), shown) if found else None
            archive = self._archives[folder]
        if archive is not None and archive.fault:
            raise PictureError("truncated", archive.fault)
        return archive


class _Archive:
    """A zip's central directory, read once. Members are read through a file handle of their own each time, so that
    neither threads nor forked processes ever share a position in the file."""

    def __init__(self, path: Path, shown: str) -> None:
        self.path = path
        self.shown = shown
        self.fault = ""
        self._members: dict[str, zipfile.ZipInfo] = {}
        try:
            with zipfile.ZipFile(path) as archive:
                self._members = archive.NameToInfo
        except Exception as error:  # zipfile raises several kinds on damaged archives
            self.fault = f"The archive {shown} is damaged or cannot be read ({error})."

    def find(self, reference: str) -> zipfile.ZipInfo | None:
        """The member a reference means. Links and special files are refused as ``outside``."""
        for name in _spellings(reference):
            info = self._members.get(name)
            if info is None or info.is_dir():
                continue
            if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
                raise PictureError("outside", f"The member {name!r} of {self.shown} is a link or a special file.")
            return info
        return None

    def read(self, member: str, max_bytes: int) -> bytes:
        """Unpack one member in memory; what its headers claim about sizes is checked, never relied on."""
        info = self._members[member]
        if info.flag_bits & 0x1:
            raise PictureError("encrypted", f"The member {member!r} of {self.shown} is encrypted.")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise PictureError(
                "unsupported", f"The member {member!r} of {self.shown} is packed by a method other than deflate."
            )
        try:
            data = self._unpack(info, max_bytes)
        except (OSError, zlib.error, ValueError) as error:
            raise self._damaged(member, str(error)) from error
        if len(data) > max_bytes:
            raise PictureError(
                "too_large", f"The member {member!r} of {self.shown} unpacks to more than {max_bytes:,} bytes."
            )
        if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
            raise self._damaged(member, "its size or checksum is not what the archive says")
        return data

    def _unpack(self, info: zipfile.ZipInfo, max_bytes: int) -> bytes:
        """At most ``max_bytes`` + 1 bytes of the member, however much there is."""
        deflated = info.compress_type == zipfile.ZIP_DEFLATED
        with self.path.open("rb") as file:
            file.seek(info.header_offset)
            header = file.read(30)
            if len(header) < 30 or header[:4] != b"PK\x03\x04":
                raise ValueError("its header is not where the archive says")
            name_and_extra = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
            file.seek(name_and_extra, os.SEEK_CUR)
            if not deflated:
                return file.read(min(info.compress_size, max_bytes + 1))
            inflater = zlib.decompressobj(-zlib.MAX_WBITS)
            unpacked = bytearray()
            left = info.compress_size
            while left and not inflater.eof and len(unpacked) <= max_bytes:
                chunk = file.read(min(_CHUNK, left))
                if not chunk:
                    break
                left -= len(chunk)
                unpacked += inflater.decompress(chunk, max_bytes + 1 - len(unpacked))
            return bytes(unpacked)

    def _damaged(self, member: str, reason: str) -> PictureError:
        return PictureError("truncated", f"The archive {self.shown} is damaged: {member!r} cannot be read ({reason}).")


def _spellings(reference: str) -> tuple[str, ...]:
    """The reference, and the same with a leading ``images/`` less or more."""
    bare = reference.removeprefix("images/")
    return (reference, f"images/{reference}") if bare == reference else (reference, bare)


def _shown(reference: str) -> str:
    """The reference in quotes, control characters escaped, short enough for a sentence."""
    return repr(reference if len(reference) <= 200 else reference[:200] + "…")


def _check(reference: str) -> None:
    """Refuse whatever could leave the folder by its spelling alone."""
    odd = (
        "\0" in reference
        or "\\" in reference
        or reference.startswith("/")
        or re.match(r"[A-Za-z]:", reference) is not None
        or ".." in reference.split("/")
    )
    if odd:
        raise PictureError(
            "outside", f"The picture {_shown(reference)} is not a plain path below the data set's folder."
        )


def _read_file(path: Path, reference: str, max_bytes: int) -> bytes:
    try:
        # Neither a link nor a pipe that has taken the file's place since it was looked at is followed or waited for.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise PictureError("outside", f"The picture {_shown(reference)} is not a regular file.")
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise PictureError("missing", f"The picture {_shown(reference)} cannot be read ({error.strerror}).") from error
    if len(data) > max_bytes:
        raise PictureError("too_large", f"The picture {_shown(reference)} has more than {max_bytes:,} bytes.")
    return data
