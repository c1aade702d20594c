from __future__ import annotations

import hashlib
import os
import stat
import struct
import threading
import zipfile
from pathlib import Path

import pytest

from core.media import source as module
from core.media.picture import PictureError
from core.media.source import Location, PictureSource

BIG = 1 << 20


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def pack(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def patch_central(path: Path, offset: int, value: bytes) -> None:
    """Overwrite a field of the first entry of the central directory."""
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02") + offset
    data[at : at + len(value)] = value
    path.write_bytes(data)


def refused(call, *arguments) -> PictureError:
    with pytest.raises(PictureError) as caught:
        call(*arguments)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
    return caught.value


@pytest.fixture
def root(tmp_path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def test_the_order_of_places(root):
    collection = root / "case_study" / "Head"
    places = [
        write(root / "images" / "a.png", b"file at the root"),
        write(collection / "images" / "a.png", b"file of the collection"),
        pack(root / "images.zip", {"images/a.png": b"zip at the root"}),
        pack(collection / "images.zip", {"images/a.png": b"zip of the collection"}),
    ]
    expected = [b"file at the root", b"file of the collection", b"zip at the root", b"zip of the collection"]
    for place, data in zip(places, expected, strict=True):
        pictures = PictureSource(root, collection)
        assert pictures.read("images/a.png", BIG) == data
        assert pictures.size("images/a.png") == len(data)
        assert pictures.resolve("images/a.png").path == place
        place.unlink()
    assert refused(PictureSource(root, collection).resolve, "images/a.png").kind == "missing"


def test_the_folder_of_a_collection_counts_only_when_it_is_named(root):
    write(root / "Head" / "a.png", b"x")
    assert refused(PictureSource(root).resolve, "a.png").kind == "missing"
    assert PictureSource(root, root).resolve("Head/a.png") == Location(root / "Head" / "a.png", 1)


def test_how_members_may_be_spelled(root):
    pack(root / "images.zip", {"images/a.png": b"A", "b.png": b"B", "deep/images/c.png": b"C", "images/b.png": b"IB"})
    pictures = PictureSource(root)
    assert pictures.read("images/a.png", BIG) == b"A"
    assert pictures.read("a.png", BIG) == b"A"
    assert pictures.read("b.png", BIG) == b"B"
    assert pictures.read("images/b.png", BIG) == b"IB"
    assert pictures.resolve("a.png") == Location(root / "images.zip", 1, "images/a.png")
    for reference in ("A.png", "c.png", "images/c.png", "a.PNG", "images/", "deep", "", " a.png"):
        assert refused(pictures.resolve, reference).kind == "missing"


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_equal_what_zipfile_reads(root, method):
    members = {f"images/{n}.bin": hashlib.sha256(str(n).encode()).digest() * (n * 997) for n in range(20)}
    path = pack(root / "images.zip", members, method)
    path.write_bytes(b"#!/bin/sh something in front\n" + path.read_bytes())  # as self-extracting archives have it
    pictures = PictureSource(root)
    with zipfile.ZipFile(path) as oracle:
        for name in members:
            assert pictures.read(name, BIG) == oracle.read(name)


@pytest.mark.parametrize(
    "reference",
    [
        "/etc/passwd",
        "../secret.png",
        "images/../../secret.png",
        "images/..",
        "..",
        "C:/windows/a.png",
        "c:a.png",
        "\\\\host\\share\\a.png",
        "images\\a.png",
        "a\0.png",
    ],
)
def test_spellings_that_could_leave_the_folder(root, reference):
    write(root.parent / "secret.png", b"secret")
    write(root / "images" / "a.png", b"x")
    pack(root / "images.zip", {"../secret.png": b"slip", "/etc/passwd": b"slip"})
    for call in (PictureSource(root).resolve, PictureSource(root).size):
        assert refused(call, reference).kind == "outside"
    assert refused(PictureSource(root).read, reference, BIG).kind == "outside"


def test_dots_that_are_harmless(root):
    write(root / "images" / "a..b.png", b"x")
    assert PictureSource(root).read("./images/a..b.png", BIG) == b"x"


def test_nothing_is_extracted(root):
    pack(root / "images.zip", {"../slip.png": b"slip", "images/a.png": b"A"})
    before = sorted(root.parent.rglob("*"))
    assert refused(PictureSource(root).read, "slip.png", BIG).kind == "missing"
    assert PictureSource(root).read("a.png", BIG) == b"A"
    assert sorted(root.parent.rglob("*")) == before


def test_links(root, tmp_path):
    write(tmp_path / "elsewhere" / "secret.png", b"secret")
    write(root / "images" / "a.png", b"A")
    (root / "images" / "file.png").symlink_to(tmp_path / "elsewhere" / "secret.png")
    (root / "folder").symlink_to(tmp_path / "elsewhere")
    (root / "images" / "gone.png").symlink_to(tmp_path / "elsewhere" / "gone.png")
    (root / "images" / "near.png").symlink_to("a.png")
    (root / "other").symlink_to(root / "images")
    (root / "images" / "nothing.png").symlink_to("nowhere.png")
    (root / "images" / "loop.png").symlink_to("loop.png")
    # A neighbour whose name starts like the root's is still outside.
    write(tmp_path / "data-private" / "secret.png", b"secret")
    (root / "sibling.png").symlink_to(tmp_path / "data-private" / "secret.png")
    pictures = PictureSource(root)
    for reference in ("images/file.png", "folder/secret.png", "images/gone.png", "sibling.png"):
        assert refused(pictures.read, reference, BIG).kind == "outside"
    for reference in ("images/near.png", "other/a.png", "other/near.png"):
        assert pictures.read(reference, BIG) == b"A"
    for reference in ("images/nothing.png", "images/loop.png"):
        assert refused(pictures.read, reference, BIG).kind == "missing"


def test_a_root_that_is_a_link_is_fine(root, tmp_path):
    write(root / "a.png", b"A")
    (tmp_path / "link").symlink_to(root)
    assert PictureSource(tmp_path / "link").read("a.png", BIG) == b"A"


def test_a_zip_that_is_a_link(root, tmp_path):
    pack(tmp_path / "away.zip", {"a.png": b"secret"})
    pack(root / "store" / "inside.zip", {"b.png": b"B"})
    (root / "images.zip").symlink_to(tmp_path / "away.zip")
    assert refused(PictureSource(root).read, "a.png", BIG).kind == "outside"
    (root / "images.zip").unlink()
    (root / "images.zip").symlink_to(root / "store" / "inside.zip")
    assert PictureSource(root).read("b.png", BIG) == b"B"


def test_a_collection_outside_its_data_set(root, tmp_path):
    assert refused(PictureSource, root, tmp_path).kind == "outside"


def test_special_files_and_folders(root):
    os.mkfifo(root / "pipe.png")
    (root / "folder.png").mkdir()
    write(root / "file.png", b"x")
    pictures = PictureSource(root)
    assert refused(pictures.read, "pipe.png", BIG).kind == "outside"
    assert refused(pictures.read, "folder.png", BIG).kind == "missing"
    assert refused(pictures.read, "file.png/below.png", BIG).kind == "missing"
    assert refused(pictures.read, "x" * 5000, BIG).kind == "missing"
    assert refused(pictures.read, "\ud800.png", BIG).kind == "missing"


def test_a_file_that_is_too_large(root):
    write(root / "a.png", b"x" * 11)
    assert PictureSource(root).read("a.png", 11) == b"x" * 11
    assert refused(PictureSource(root).read, "a.png", 10).kind == "too_large"


def test_a_file_that_grows_while_it_is_read(root, monkeypatch):
    path = write(root / "a.png", b"x" * 11)
    pictures = PictureSource(root)
    monkeypatch.setattr(PictureSource, "_locate", lambda self, reference: (Location(path, 5), None))
    assert refused(pictures.read, "a.png", 10).kind == "too_large"


def test_encrypted(root):
    path = pack(root / "images.zip", {"a.png": b"x" * 100})
    patch_central(path, 8, struct.pack("<H", 0x1))
    error = refused(PictureSource(root).read, "a.png", BIG)
    assert error.kind == "encrypted" and "images.zip" in str(error)


def test_headers_that_lie_about_sizes(root):
    data = b"\0" * (8 << 20)
    path = pack(root / "images.zip", {"a.png": data})
    patch_central(path, 24, struct.pack("<I", 100))  # claims 100 bytes, unpacks to 8 MiB
    assert PictureSource(root).size("a.png") == 100
    assert refused(PictureSource(root).read, "a.png", 1000).kind == "too_large"
    assert refused(PictureSource(root).read, "a.png", 16 << 20).kind == "truncated"
    patch_central(path, 24, struct.pack("<I", 3_000_000_000))  # claims far more than there is
    assert refused(PictureSource(root).read, "a.png", BIG).kind == "too_large"
    assert refused(PictureSource(root).read, "a.png", 4_000_000_000).kind == "truncated"


def test_unpacking_never_goes_beyond_the_limit(root):
    path = pack(root / "images.zip", {"a.png": b"\0" * (8 << 20)})
    patch_central(path, 24, struct.pack("<I", 100))
    archive = module._Archive(path, "images.zip")
    assert len(archive._unpack(archive.find("a.png"), 1000)) == 1001


def test_links_and_pipes_in_a_zip(root):
    with zipfile.ZipFile(root / "images.zip", "w") as archive:
        for name, mode in (("link.png", stat.S_IFLNK), ("pipe.png", stat.S_IFIFO), ("file.png", stat.S_IFREG)):
            info = zipfile.ZipInfo(name)
            info.external_attr = (mode | 0o644) << 16
            archive.writestr(info, b"/etc/passwd")
    pictures = PictureSource(root)
    assert refused(pictures.read, "link.png", BIG).kind == "outside"
    assert refused(pictures.read, "pipe.png", BIG).kind == "outside"
    assert pictures.read("file.png", BIG) == b"/etc/passwd"


def test_a_method_that_is_not_deflate(root):
    pack(root / "images.zip", {"a.png": b"x" * 1000}, zipfile.ZIP_BZIP2)
    assert refused(PictureSource(root).read, "a.png", BIG).kind == "unsupported"


def test_damaged_archives(root):
    path = root / "images.zip"
    sound = pack(path, {"a.png": os.urandom(5000), "b.png": os.urandom(5000)}).read_bytes()
    write(root / "file.png", b"x")
    for data in (b"", b"no zip at all", sound[: len(sound) // 2], sound[:-30]):
        path.write_bytes(data)
        pictures = PictureSource(root)
        assert pictures.read("file.png", BIG) == b"x"  # what needs no zip is not affected
        for _ in range(2):
            error = refused(pictures.read, "a.png", BIG)
            assert error.kind == "truncated" and "images.zip" in str(error)
    flipped = bytearray(sound)
    flipped[2000] ^= 0xFF
    path.write_bytes(flipped)
    assert refused(PictureSource(root).read, "a.png", BIG).kind == "truncated"
    assert len(PictureSource(root).read("b.png", BIG)) == 5000
    path.write_bytes(sound)
    patch_central(path, 42, struct.pack("<I", 77))  # the member is not where the directory says
    assert refused(PictureSource(root).read, "a.png", BIG).kind == "truncated"


def test_threads_share_one_source_and_the_directory_is_read_once(root, monkeypatch):
    members = {f"images/{n}.bin": hashlib.sha256(str(n).encode()).digest() * 500 for n in range(40)}
    pack(root / "images.zip", members)
    opened = []
    plain = zipfile.ZipFile
    monkeypatch.setattr(module.zipfile, "ZipFile", lambda path: opened.append(path) or plain(path))
    pictures = PictureSource(root)
    wrong = []

    def work():
        wrong.extend(name for name, data in members.items() if pictures.read(name, BIG) != data)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and opened == [root / "images.zip"]


def test_plain_files_cost_no_realpath(root, monkeypatch):
    for n in range(50):
        write(root / "images" / f"{n}.png", b"x")
    pictures = PictureSource(root, root / "images")
    monkeypatch.setattr(module.os.path, "realpath", lambda path: pytest.fail("realpath was called"))
    assert all(pictures.resolve(f"images/{n}.png").size == 1 for n in range(50))


def test_messages_are_short_and_printable(root):
    message = str(refused(PictureSource(root).resolve, "\x1b[31m" + "x" * 10_000 + "\n"))
    assert len(message) < 400 and message.isprintable()


def test_an_unpacked_archive_is_found_with_images_less_or_more(tmp_path):
    for name, reference in (("images/Head/a.png", "Head/a.png"), ("Head/b.png", "images/Head/b.png")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
        assert PictureSource(tmp_path).read(reference, 100) == name.encode()
    (tmp_path / "images" / "Head" / "b.png").write_bytes(b"exact spelling wins")
    assert PictureSource(tmp_path).read("images/Head/b.png", 100) == b"exact spelling wins"
    with pytest.raises(PictureError, match="neither"):
        PictureSource(tmp_path).read("a.png", 100)
