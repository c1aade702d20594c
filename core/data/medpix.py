"""MedPix 2.0 (https://github.com/CHILab1/MedPix-2.0) converted into the benchmark's layout.

Source: a folder with ``Case_topic.json`` (a list of cases), ``Descriptions.json`` (a list of images), ``images/`` and
sometimes ``splits.json`` (``{split: [case, ...]}``). Result: ``OUT/<task>/<Domain>/{queries.jsonl, corpus.jsonl,
qrels/test.tsv}`` for four tasks and every body region, ``OUT/images/`` and ``OUT/benchmark.json``. The same source
gives the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.data.medpix_source import CASES, IMAGES, Case, Image, PrepareError, read_source
from core.media.picture import DEFAULT_LIMITS, PictureError
from core.media.source import PictureSource
from core.store.atomic import atomic_folder

NAME = "MedPix 2.0"
SOURCE = "https://github.com/CHILab1/MedPix-2.0"
LICENCE = "the source states no licence for its data"
TASKS = ("visual_context", "summary", "query_to_image", "case_study")
SHORTEST_PARAGRAPH = 40
"""Characters a paragraph must have to become a document of ``visual_context``."""

_FILES = ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv")

Progress = Callable[[str, int, int], None]
"""``progress(what, done, total)``; whatever it raises ends the conversion, and nothing is left behind."""


@dataclass(frozen=True, slots=True)
class _Collection:
    """Finished lines; ``judgements`` are (query id, document id, grade) in query order, then corpus order."""

    queries: list[dict[str, Any]]
    corpus: list[dict[str, Any]]
    judgements: list[tuple[str, str, int]]
    dropped: int

    def counts(self) -> dict[str, int]:
        """``dropped``: queries left out because nothing in the corpus answers them."""
        return {
            "queries": len(self.queries),
            "documents": len(self.corpus),
            "judgements": len(self.judgements),
            "dropped": self.dropped,
        }


def prepare(src: Path, out: Path, progress: Progress | None = None) -> dict[str, Any]:
    """Convert the MedPix folder ``src`` into the data set folder ``out``; give the content of its ``benchmark.json``.

    ``out`` appears complete or not at all. An ``out`` that this function wrote is replaced; any other that is not
    empty is refused. Raises :class:`PrepareError`.
    """
    src, out = Path(src).resolve(), Path(out).resolve()
    _check_folders(src, out)
    cases, images = read_source(src)
    domains = sorted({image.domain for image in images})
    collections = {f"{task}/{domain}": _BUILDERS[task](domain, cases, images) for task in TASKS for domain in domains}
    benchmark = _benchmark(cases, images, domains, collections)
    with atomic_folder(out) as folder:
        for path, collection in collections.items():
            _write(folder / path, collection)
        _copy(src, folder, images, progress)
        _write_text(folder / "benchmark.json", json.dumps(benchmark, ensure_ascii=False, indent=2) + "\n")
    return benchmark


def _check_folders(src: Path, out: Path) -> None:
    if not src.is_dir():
        raise PrepareError(f"{src} is not a folder; name the one that holds {CASES} and {IMAGES}.")
    if out.is_relative_to(src) or src.is_relative_to(out):
        raise PrepareError(f"{out} and {src} lie in one another; choose an output folder apart from the source.")
    if out.exists() and not out.is_dir():
        raise PrepareError(f"{out} is a file; name a folder to write into.")
    if out.is_dir() and (foreign := _foreign(out)):
        raise PrepareError(f"{out} holds {foreign}, which was not written by this command; choose an empty folder.")


def _foreign(out: Path) -> str:
    """The first thing in ``out`` that an earlier conversion cannot have written, else nothing."""
    files: set[str] = set()
    try:
        benchmark = json.loads((out / "benchmark.json").read_bytes())
        if benchmark["source"] == SOURCE:
            files = {"benchmark.json"} | {f"{c['path']}/{name}" for c in benchmark["collections"] for name in _FILES}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    folders = {parent.as_posix() for file in files for parent in Path(file).parents} | ({"images"} if files else set())
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        picture = bool(files) and re.fullmatch(r"images/[^/]+\.png", name)
        known = name in folders if path.is_dir() else name in files or picture
        if path.is_symlink() or not known:
            return name
    return ""


def _meta(domain: str, specialty: str, case: Case, picture: tuple[str, str] | None, split: bool) -> dict[str, str]:
    """What every line carries; ``picture`` is its modality and plane."""
    meta = {"domain": domain, "specialty": specialty, "case": case.id, "cluster": case.topic}
    if picture is not None:
        meta["modality"], meta["plane"] = picture
    if split and case.split:
        meta["split"] = case.split
    return meta


def _image_query(image: Image, case: Case, domain: str) -> dict[str, Any]:
    return {
        "_id": image.name,
        "caption": image.caption,
        "image_path": f"images/{image.name}.png",
        "meta": _meta(domain, image.location, case, (image.kind, image.plane), split=True),
    }


def _case_query(case: Case) -> dict[str, Any]:
    first = case.images[0]
    kinds = "+".join(sorted({image.kind for image in case.images if image.kind}))
    return {
        "_id": f"q-{case.id}",
        "caption": case.words,
        "image_path": f"images/{first.name}.png",
        "meta": _meta(case.domain, first.location, case, (kinds, first.plane), split=True),
    }


def _case_document(case: Case, text: str) -> dict[str, Any]:
    meta = _meta(case.domain, case.images[0].location, case, None, split=False)
    return {"_id": case.id, "text": text, "meta": meta}


def _collect(
    queries: Sequence[tuple[Any, dict[str, Any]]],
    documents: Sequence[tuple[Any, dict[str, Any]]],
    grade: Callable[[Any, Any], int],
) -> _Collection:
    """Judge every pair (thing, line) by its things; queries without an answer are dropped."""
    kept, judgements = [], []
    for asked, query in queries:
        answers = [(query["_id"], doc["_id"], g) for thing, doc in documents if (g := grade(asked, thing))]
        if answers:
            kept.append(query)
            judgements += answers
    return _Collection(kept, [line for _, line in documents], judgements, len(queries) - len(kept))


def _same_case_or_topic(asked: Case, found: Case) -> int:
    return 2 if asked.id == found.id else int(asked.shares_topic(found))


def _query_to_image(domain: str, cases: list[Case], images: list[Image]) -> _Collection:
    by_id = {case.id: case for case in cases}
    members = [(image, by_id[image.case]) for image in images if image.domain == domain]
    documents = []
    for image, case in members:
        meta = _meta(domain, image.location, case, (image.kind, image.plane), split=False)
        line = {"_id": image.name, "text": "", "image_path": f"images/{image.name}.png", "meta": meta}
        documents.append(((image, case), line))
    return _collect(
        [((image, case), _image_query(image, case, domain)) for image, case in members],
        documents,
        lambda asked, found: 0 if asked[0] is found[0] else _same_case_or_topic(asked[1], found[1]),
    )


def _case_study(domain: str, cases: list[Case], images: list[Image]) -> _Collection:
    members = [case for case in cases if case.domain == domain]
    return _collect(
        [(case, _case_query(case)) for case in members if case.words],
        [(case, _case_document(case, case.report)) for case in members],
        _same_case_or_topic,
    )


def _summary(domain: str, cases: list[Case], images: list[Image]) -> _Collection:
    members = [case for case in cases if case.domain == domain]
    asking = [case for case in members if case.words]
    answerable = [case for case in asking if case.findings]
    found = _collect(
        [(case, _case_query(case)) for case in answerable],
        [(case, _case_document(case, case.findings)) for case in members if case.findings],
        _same_case_or_topic,
    )
    return _Collection(found.queries, found.corpus, found.judgements, len(asking) - len(answerable))


def paragraphs(text: str) -> list[str]:
    """The parts between blank lines (lines of nothing but white space), stripped, that are long enough."""
    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return [part for part in parts if len(part) >= SHORTEST_PARAGRAPH]


def _visual_context(domain: str, cases: list[Case], images: list[Image]) -> _Collection:
    members = {case.id: case for case in cases if case.domain == domain}
    holders: dict[str, list[Case]] = {}
    for case in members.values():
        for paragraph in paragraphs(case.disease):
            holders.setdefault(paragraph, []).append(case)
    slug = re.sub(r"[\W_]+", "-", domain.lower()).strip("-")
    documents = []
    for number, (paragraph, holding) in enumerate(holders.items()):
        meta = _meta(domain, holding[0].images[0].location, holding[0], None, split=False)
        documents.append((holding, {"_id": f"{slug}-p{number}", "text": paragraph, "meta": meta}))
    asking = [(image, members[image.case]) for image in images if image.case in members]
    return _collect(
        [(case, _image_query(image, case, domain)) for image, case in asking],
        documents,
        lambda asked, holding: int(any(asked.shares_topic(case) for case in holding)),
    )


_BUILDERS: dict[str, Callable[[str, list[Case], list[Image]], _Collection]] = {
    "visual_context": _visual_context,
    "summary": _summary,
    "query_to_image": _query_to_image,
    "case_study": _case_study,
}


def _benchmark(
    cases: list[Case], images: list[Image], domains: list[str], collections: dict[str, _Collection]
) -> dict[str, Any]:
    counts = {path: collection.counts() for path, collection in collections.items()}
    total = {key: sum(c[key] for c in counts.values()) for key in ("queries", "documents", "judgements", "dropped")}
    return {
        "name": NAME,
        "source": SOURCE,
        "licence": LICENCE,
        "tasks": list(TASKS),
        "domains": domains,
        "domain_meaning": "body region",
        "splits": sorted({case.split for case in cases if case.split}),
        "counts": {"cases": len(cases), "images": len(images), "total": total, "collections": counts},
        "judgements": "positives-only",
        "ignore_identical_ids": True,
        "collections": [{"path": p, "task": p.split("/")[0], "domain": p.split("/")[1]} for p in collections],
    }


def _write(folder: Path, collection: _Collection) -> None:
    for name, lines in (("queries.jsonl", collection.queries), ("corpus.jsonl", collection.corpus)):
        _write_text(folder / name, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    rows = "".join(f"{query}\t{doc}\t{grade}\n" for query, doc, grade in collection.judgements)
    _write_text(folder / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\n" + rows)


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())  # bytes, so that no system changes the line ends


def _copy(src: Path, folder: Path, images: list[Image], progress: Progress | None) -> None:
    pictures = PictureSource(src)
    (folder / "images").mkdir()
    for number, image in enumerate(images, 1):
        name = f"images/{image.name}.png"
        try:
            data = pictures.read(name, DEFAULT_LIMITS.max_bytes)
        except PictureError as error:
            raise PrepareError(f"{IMAGES}, entry {number} ({image.name}): {error}") from error
        (folder / name).write_bytes(data)
        if progress is not None:
            progress("copying pictures", number, len(images))
