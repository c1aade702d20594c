"""The shipped assets agree with each other and with the data they name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.adapt.build_medlite import FOLDS, PENALTIES, REPEATS, SEED
from core.adapt.card import render
from core.adapt.cases import read_cases, training_pairs
from core.models.medlite import CONFIG, FOLDER, HEAD, TOWER
from core.models.specs import get
from core.store.manifest import sha256_file


def read(name: str):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def test_the_card_is_what_the_evidence_renders_to():
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == render(read("build.json"))


def test_evidence_configuration_and_files_agree():
    evidence, config = read("build.json"), read(CONFIG)
    assert evidence["files"] == config["files"] == {name: sha256_file(FOLDER / name) for name in (TOWER, HEAD)}
    assert (evidence["seed"], evidence["folds"], evidence["repeats"]) == (SEED, FOLDS, REPEATS)
    assert config["preprocessing"]["fit"] == evidence["fit"]
    assert config["default_weight"] == {s["target"]: s["chosen"] for s in evidence["sweeps"]}
    assert evidence["spec"]["revision"] == get("medlite").revision
    assert evidence["cases"] == len(read("training_cases.json"))


def test_the_choices_are_the_best_of_their_tables():
    evidence = read("build.json")
    best = {way: max(row["mean"] for row in table) for way, table in evidence["fits"].items()}
    assert best[evidence["fit"]] == max(best.values())
    for table in evidence["fits"].values():
        assert tuple(row["penalty"] for row in table) == PENALTIES
    chosen = [row["mean"] for row in evidence["fits"][evidence["fit"]] if row["penalty"] == evidence["penalty"]]
    assert chosen == [best[evidence["fit"]]]
    # at the edge of the grid the best λ may lie outside it
    assert PENALTIES[0] < evidence["penalty"] < PENALTIES[-1]


def test_the_shipped_files_stay_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 9_000_000


@pytest.mark.realdata
def test_training_cases_are_those_of_the_source_and_no_dev_case_is_among_them(shared: Path):
    source = shared / "medpix-2.0"
    cases = read_cases(source, "train")
    named = read("training_cases.json")
    assert named == {case.id: case.sha256 for case in cases}
    assert not set(named) & set(json.loads((source / "splits.json").read_text())["dev"])
    evidence = read("build.json")
    assert evidence["pairs"] == len(training_pairs(cases))
    assert evidence["topics"] == len({case.topic for case in cases})
