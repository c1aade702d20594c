"""The shipped assets agree with each other and with the data they name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.adapt.card import render
from core.adapt.choose import SHARES, TOLERANCE, WEIGHTS
from core.adapt.command import CARD, TRIALS
from core.adapt.contrastive import LEAST_EPOCHS, Recipe
from core.adapt.make import CASES, EVIDENCE
from core.models.frozen import TOWER
from core.models.medlite import CONFIG, FOLDER, HEAD
from core.store.manifest import sha256_file


def read(name: str):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def test_the_card_is_what_the_evidence_renders_to():
    assert (FOLDER / CARD).read_text(encoding="utf-8") == render(read(EVIDENCE), read(TRIALS))


def test_evidence_configuration_and_files_agree():
    evidence, config = read(EVIDENCE), read(CONFIG)
    assert evidence["files"] == config["files"] == {name: sha256_file(FOLDER / name) for name in (TOWER, HEAD)}
    for key in ("dimension", "blocks", "default_weight"):
        assert evidence[key] == config[key]
    assert evidence["recipe"] == Recipe().as_dict()
    assert evidence["counts"]["cases"] == len(read(CASES))
    assert config["dimension"] <= 1024


def test_the_choices_are_the_best_of_their_tables():
    evidence = read(EVIDENCE)
    shares = {(a, b): value for a, b, value in evidence["shares_tried"]}
    assert set(shares) == {(a, b) for a in SHARES for b in SHARES}
    assert shares[evidence["blocks"]["alpha"], evidence["blocks"]["beta"]] == max(shares.values())
    assert {curve["target"] for curve in evidence["curves"]} == {"image", "text", "both"}
    for curve in evidence["curves"]:
        at = dict(zip(WEIGHTS, curve["ndcg"], strict=True))
        weight = evidence["default_weight"][curve["target"]]
        assert at[weight] >= max(at.values()) - TOLERANCE
        assert all(value < max(at.values()) - TOLERANCE for w, value in at.items() if w < weight)
    later = [e for e in evidence["epochs"] if e["number"] >= LEAST_EPOCHS]
    best = max(later, key=lambda e: e["text_to_image"] + e["image_to_image"])
    assert evidence["best_epoch"] == best["number"]


def test_the_shipped_files_stay_small():
    assert (FOLDER / HEAD).stat().st_size < 3_800_000
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 11_500_000


@pytest.mark.realdata
def test_training_cases_are_those_of_the_source_and_no_dev_case_is_among_them(shared: Path):
    splits = json.loads((shared / "medpix-2.0" / "splits.json").read_text())
    named = set(read(CASES))
    assert named <= set(splits["train"])
    assert not named & set(splits["dev"])
    described = json.loads((shared / "medpix-2.0" / "Descriptions.json").read_text())
    with_picture = {row["U_id"] for row in described}
    assert len(named) >= 0.99 * len(with_picture & set(splits["train"]))
