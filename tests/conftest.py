"""Shared by all tests: the toy data set, a workspace of its own for every test, and the marker of real data."""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
SHARED = ROOT.parent / "shared" / "data"

# The same examples in every run; `--hypothesis-profile=default` looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "realdata: needs ../shared/data, skipped where it is absent")
    config.addinivalue_line("markers", "journey: drives a real Chromium")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if SHARED.is_dir():
        return
    skip = pytest.mark.skip(reason="../shared/data is not here: tests on real data are skipped")
    for item in items:
        if item.get_closest_marker("realdata"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data (tests that ask for it carry the marker ``realdata``)."""
    return SHARED


@pytest.fixture(autouse=True)
def _own_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the user's workspace or environment."""
    monkeypatch.setenv("M3R_WORKSPACE", str(tmp_path / "workspace"))
    for name in ("M3R_DATA", "M3R_PUBLIC", "SPACE_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def workspace(tmp_path: Path):
    from core.store.workspace import open_workspace

    return open_workspace(str(tmp_path / "workspace"))


def write_jsonl(path: Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write_collection(folder: Path, queries: list[dict], corpus: list[dict], qrels: list[tuple]) -> None:
    """Write one collection in the benchmark's layout."""
    write_jsonl(folder / "queries.jsonl", queries)
    write_jsonl(folder / "corpus.jsonl", corpus)
    (folder / "qrels").mkdir(exist_ok=True)
    lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in qrels)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def collection_writer():
    """`write_collection`, for tests that make a data set of their own."""
    return write_collection


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A toy data set: two tasks, two domains, ids that repeat across collections, pictures made here."""
    from PIL import Image

    root = tmp_path / "toy"
    (root / "images").mkdir(parents=True)
    colours = {"a1": "red", "a2": "darkred", "b1": "blue", "b2": "navy"}
    for name, colour in colours.items():
        Image.new("RGB", (32, 24), colour).save(root / "images" / f"{name}.png")
    for domain, names in (("Head", ("a1", "a2")), ("Thorax", ("b1", "b2"))):
        meta = {"domain": domain, "specialty": f"{domain} imaging", "case": names[0][0], "cluster": names[0][0]}
        rows = [
            {"_id": n, "caption": f"a {colours[n]} square", "image_path": f"images/{n}.png", "meta": meta}
            for n in names
        ]
        docs = [
            {"_id": n, "text": "", "image_path": f"images/{n}.png", "meta": {**meta, "modality": "CT"}} for n in names
        ]
        pairs = [(names[0], names[1], 2), (names[1], names[0], 2)]
        write_collection(root / "query_to_image" / domain, rows, docs, pairs)
        passages = [
            {"_id": "p0", "title": domain, "text": f"A passage about the {domain.lower()}.", "meta": meta},
            {"_id": "p1", "title": "", "text": "The same sentence in both domains.", "meta": meta},
        ]
        write_collection(
            root / "visual_context" / domain, rows[:1], passages, [(names[0], "p0", 1), (names[0], "p1", 0)]
        )
    (root / "benchmark.json").write_text(
        json.dumps({"name": "Toy", "licence": "CC0-1.0", "ignore_identical_ids": True})
    )
    return root


class ToyEncoder:
    """A small real encoder: pictures by their mean colour, texts by hashed words; 16 dimensions, no weights.

    It counts what it encodes, so tests can see that nothing is encoded twice.
    """

    name, dimension, encoder_id, card = "toy", 16, "toy-encoder", None
    limit = 12

    def __init__(self) -> None:
        self.encoded = 0
        self.shipped_mean = {side: np.full(16, 0.01, np.float32) for side in ("image", "text")}

    def capabilities(self) -> frozenset[str]:
        return frozenset({"image", "text"})

    def requires(self) -> list[str]:
        return []

    def default_weight(self, target: str) -> float:
        return {"image": 0.6, "text": 0.3, "both": 0.5}[target]

    def encode_images(self, images) -> dict:
        self.encoded += len(images)
        colours = np.array([np.asarray(i, np.float32).reshape(-1, 3).mean(axis=0) / 255 for i in images], np.float32)
        basis = np.random.default_rng(1).standard_normal((3, 16)).astype(np.float32)
        return {"single": _unit(colours @ basis + 0.05)}

    def encode_texts(self, texts) -> dict:
        self.encoded += len(texts)
        rows = np.zeros((len(texts), 16), np.float32)
        counts = np.array([len(t.split()) for t in texts])
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split()[: self.limit]:
                row += np.random.default_rng(zlib.crc32(word.encode())).standard_normal(16).astype(np.float32)
        return {"single": _unit(rows), "truncated": counts > self.limit, "tokens": counts}


def _unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)).astype(np.float32)


@pytest.fixture
def encoder() -> ToyEncoder:
    return ToyEncoder()
