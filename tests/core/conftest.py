"""Shared by the tests of training, cross-fitting and evaluation: a small archive of drawn cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image, ImageDraw


@pytest.fixture(scope="session")
def archive(tmp_path_factory) -> Path:
    """34 cases of two pictures in 32 topics: cases 32 and 33 share the topics of 0 and 1, every fourth is of `dev`."""
    root = tmp_path_factory.mktemp("archive")
    (root / "images").mkdir()
    queries, corpus, passages, qrels = [], [], [], []
    for case in range(34):
        meta = {"case": f"C{case:02}", "cluster": f"topic {case % 32}", "split": "dev" if case % 4 == 3 else "train"}
        for number in range(2):
            name = f"C{case:02}-{number}"
            picture = Image.new("RGB", (48, 48), (case * 7, 90, 250 - case * 7))
            ImageDraw.Draw(picture).ellipse((4, 4, 20 + case, 20 + 8 * number), fill=(255, 255, case))
            picture.save(root / "images" / f"{name}.png")
            words = f"an ellipse of size {case}, picture {number}"
            queries.append({"_id": name, "caption": words, "image_path": f"images/{name}.png", "meta": meta})
            corpus.append({"_id": name, "text": "", "image_path": f"images/{name}.png", "meta": meta})
            qrels.append((name, f"C{case:02}-{1 - number}", 2))
        passages.append({"_id": f"p{case}", "text": f"What is known of ellipses of size {case}.", "meta": meta})
    for task, documents, judged in (
        ("query_to_image", corpus, qrels),
        ("visual_context", passages, [(q["_id"], f"p{int(q['_id'][1:3])}", 1) for q in queries]),
    ):
        folder = root / task / "Head"
        (folder / "qrels").mkdir(parents=True)
        for file, rows in (("queries", queries), ("corpus", documents)):
            (folder / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in judged)]
        (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")
    (root / "benchmark.json").write_text(json.dumps({"name": "Ellipses", "ignore_identical_ids": True}))
    return root
