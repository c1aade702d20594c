"""The published figures, all forty cells, and what is put beside them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from core.evaluate.published import RESULTS, differences, load

# The authors' table, nDCG@10 x 100: visual context, summary, query to image, case study.
TABLE = """
BM25 38.07 18.16 N/A 11.50
E5 Large 35.14 70.23 N/A 7.68
BGE 32.32 83.66 N/A 6.59
NV-Embed 43.28 89.73 N/A 10.99
MM-Ret 24.56 43.71 2.27 1.09
MII 28.13 22.50 43.53 1.64
CLIP-SF 26.44 26.30 29.06 1.27
BLIP-FF 24.72 20.89 2.23 0.92
MM-Embed 45.47 76.27 29.49 9.91
FLMR 24.80 21.30 2.56 1.48
"""
COLUMNS = ("visual_context", "summary", "query_to_image", "case_study")
NAMES = {"other model", "other data", "queries left out", "proxy.jpg", "dropped queries, similar names"}
NAMES |= {
    "training data",
    "corpus encoded as queries",
    "sums not normalised",
    "first picture of a batch",
    "maximum lengths",
}


def test_all_forty_cells() -> None:
    expected = {}
    for line in TABLE.strip().splitlines():
        name, *cells = line.rsplit(" ", 4)
        expected |= {(name, task): cell for task, cell in zip(COLUMNS, cells, strict=True)}
    found = load()
    assert len(found) == len(expected) == 40
    shown = {(f.model, f.task): "N/A" if f.ndcg_at_10 is None else f"{100 * f.ndcg_at_10:.2f}" for f in found}
    assert shown == expected and list(shown.values()).count("N/A") == 4
    assert {f.source for f in found} == {"README of github.com/AkashGhosh/M3Retrieve"}
    assert {f.arxiv for f in found} == {"2510.06888"}
    source = (RESULTS.parent / "SOURCE.md").read_text(encoding="utf-8")
    assert "2510.06888" in source and "AkashGhosh/M3Retrieve" in source
    assert {f.model for f in found if not f.sees_pictures} == {"BM25", "E5 Large", "BGE", "NV-Embed"}


@pytest.mark.parametrize(
    ("old", "new"), [("0.3807", "38.07"), ("0.3807", ""), ("0.3807", "nan"), ("visual_context", "visual"), (",0.", "")]
)
def test_a_damaged_file_is_named(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(RESULTS.read_text().replace(old, new, 1))
    with pytest.raises(ValueError, match=r"results\.csv, line 2: "):
        load(path)


def row(model_id: str, macro: float | None, task: str = "query_to_image", measure: str = "nDCG@10", seen: int = 0):
    return {"model": "ours", "model_id": model_id, "task": task, "measure": measure, "macro": macro} | {
        "seen_excluded": seen
    }


def test_differences_the_same_model_first() -> None:
    found = differences([row("nvidia/mm-embed", 0.25)])
    assert len(found) == 10 and [d.same_model for d in found] == [True] + [False] * 9
    best = found[0]
    assert best.published.model == "MM-Embed" and best.ours == 0.25
    assert best.difference == pytest.approx(0.25 - 0.2949)
    beside = {d.published.model: d for d in found}
    assert beside["BM25"].difference is None and beside["BM25"].published.ndcg_at_10 is None
    assert beside["MII"].difference == pytest.approx(0.25 - 0.4353)
    renamed = differences([row("BAAI/BGE-VL-large", 0.5, "summary")])[0]
    assert renamed.same_model and renamed.published.model == "MM-Ret"


@pytest.mark.parametrize("macro", [None, math.nan])
def test_ours_not_available(macro) -> None:
    found = differences([row("medlite", macro)])
    assert all(d.ours is None and d.difference is None and not d.same_model for d in found)


def test_other_measures_and_tasks_are_passed_over() -> None:
    assert differences([row("m", 0.5, measure="R@10"), row("m", 0.5, task="retrieval")]) == []
    assert differences([row("m", 0.5) | {"scope": "pool"}]) == []
    assert len(differences([row("m", 0.5, task) for task in COLUMNS])) == 40


def test_each_reason_where_it_can_apply() -> None:
    found = differences([row("BAAI/bge-large-en-v1.5", 0.5, "summary"), row("m", 0.5, "summary", seen=3)])
    found += differences([row("m", 0.5, "summary") | {"training_data": True, "scope": "collections"}])
    reasons = {(d.published.model, i // 10): {r.name for r in d.reasons} for i, d in enumerate(found)}
    assert set().union(*reasons.values()) == NAMES
    assert all("other data" in names for names in reasons.values())
    assert "other model" not in reasons["BGE", 0] and "other model" in reasons["BGE", 1]
    assert all(("training data" in names) == (own == 2) for (_, own), names in reasons.items())
    assert all(("queries left out" in names) == (own == 1) for (_, own), names in reasons.items())
    only = {"corpus encoded as queries": {"MM-Embed"}, "sums not normalised": {"MII"}}
    only |= {"first picture of a batch": {"CLIP-SF", "BLIP-FF"}}
    for name, models in only.items():
        assert {model for (model, _), names in reasons.items() if name in names} == models
    for name in ("proxy.jpg", "dropped queries, similar names"):
        without = {model for (model, _), names in reasons.items() if name not in names}
        assert without == {"BM25", "E5 Large", "BGE", "NV-Embed"}
    assert {model for (model, _), names in reasons.items() if "maximum lengths" not in names} == {"BM25"}
    assert found[1].reasons[0].name == "other model"
    assert all(r.text.endswith(".") and r.when.endswith(".") for d in found for r in d.reasons)
