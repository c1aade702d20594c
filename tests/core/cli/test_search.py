"""``python -m core search`` and ``index`` on the toy data set, with the shipped model, as a person would call them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.models import specs

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def run(toy, tmp_path):
    def call(command: str, *options: str, data: Path = toy) -> subprocess.CompletedProcess:
        environment = {**os.environ, "M3R_WORKSPACE": str(tmp_path / "workspace"), "HF_HUB_OFFLINE": "1"}
        arguments = [sys.executable, "-m", "core", command, str(data), *options]
        return subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True)

    return call


def test_json_holds_the_query_the_index_and_hits_whose_shares_add_up(run, toy):
    image = toy / "images" / "b1.png"
    options = ("--task", "query_to_image", "--text", "a blue square", "--image", str(image), "--weight", "0.4")
    done = run("search", *options, "--k", "3", "--domain", "Head", "--domain", "Thorax", "--json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert value["query"]["weight"] == 0.4 and value["query"]["searched"] == 4
    assert value["index"] == {"kind": "exact", "recall_at_10": None}
    assert [h["rank"] for h in value["hits"]] == [1, 2, 3]
    for hit in value["hits"]:
        assert set(hit) == {
            "rank", "collection", "doc_id", "score", "image_share", "text_share", "relevance", "meta"
        }  # fmt: skip
        assert np.float32(hit["image_share"]) + np.float32(hit["text_share"]) == np.float32(hit["score"])
        assert hit["relevance"] is None
    assert value["hits"][0]["doc_id"] == "b1"
    spec = specs.get("medlite")
    assert value["model"] == {"name": "medlite", "model_id": spec.model_id, "revision": spec.revision}
    assert value["strength"]["calibrated"] is False and "python -m core index" in value["strength"]["sentence"]
    assert value["judged"] == {"relevant": 0, "best_rank": None, "trained_on": False}
    # The same call again reads the stored vectors and gives the same bytes.
    again = run("search", *options, "--k", "3", "--domain", "Head", "--domain", "Thorax", "--json")
    assert again.stdout == done.stdout


def test_a_query_of_the_data_set_brings_its_picture_words_and_judgements(run):
    options = ("--task", "query_to_image", "--query", "query_to_image/Head/a1")
    hits = json.loads(run("search", *options, "--json").stdout)["hits"]
    assert {h["doc_id"]: h["relevance"] for h in hits} == {"a2": 2, "b1": None, "b2": None}
    plain = run("search", *options).stdout
    assert "relevant 2" in plain and "not listed" in plain and "match strength: not calibrated" in plain
    short = json.loads(run("search", *options, "--k", "1", "--json").stdout)
    place = next(h["rank"] for h in json.loads(run("search", *options, "--json").stdout)["hits"] if h["relevance"])
    assert short["judged"] == {"relevant": 1, "best_rank": place, "trained_on": False}
    assert f"best relevant document: rank {place} (1 relevant here)" in plain
    unmarked = run("search", "--task", "query_to_image", "--text", "red").stdout
    assert "not listed" not in unmarked


@pytest.mark.parametrize(
    ("options", "words", "code"),
    [
        (("--task", "query_to_image"), "Give --text, --image, or both", 1),
        (("--task", "case_study", "--text", "x"), "has no task 'case_study'", 1),
        (("--task", "query_to_image", "--text", "x", "--domain", "Foot"), "there are: Head, Thorax", 1),
        (("--task", "query_to_image", "--text", "x", "--weight", "3"), "between 0", 1),
        (("--task", "query_to_image", "--text", "x", "--model", "nope"), "medlite", 1),
        (("--task", "query_to_image", "--query", "query_to_image/Head/zz"), "no query", 1),
        (("--task", "query_to_image", "--image", "/nowhere.png"), "/nowhere.png", 1),
    ],
)
def test_what_cannot_be_searched_is_one_sentence(run, options, words, code):
    done = run("search", *options, "--json")
    assert done.returncode == code and done.stdout == ""
    assert words in done.stderr and "Traceback" not in done.stderr


def test_no_data_set_is_exit_code_2(run, tmp_path):
    for command, options in (("search", ("--task", "summary", "--text", "x")), ("index", ()), ("check", ())):
        done = run(command, *options, data=tmp_path / "nowhere")
        assert done.returncode == 2 and "is not a folder" in done.stderr


def test_index_prints_a_row_a_pool_and_then_nothing_is_left_to_encode(run):
    rows = json.loads(run("index", "--json").stdout)
    assert [r["task"] for r in rows] == ["visual_context", "query_to_image"]
    passages, pictures = rows
    assert (passages["documents"], passages["distinct"]) == (4, 3)  # one sentence stands in both domains
    assert (pictures["documents"], pictures["distinct"], pictures["left_out"]) == (4, 4, 0)
    assert pictures["kind"] == "exact" and "fewer than" in pictures["note"]
    assert passages["encoded"] > 0 and pictures["encoded"] > 0
    modes = pictures["strength"]["modes"]
    assert set(modes) == {"picture", "words", "both"} and modes["both"]["n"] == 4
    assert {"medlite", pictures["model_id"]} >= {pictures["model"]} and pictures["revision"]
    strength = json.loads(run("search", "--task", "query_to_image", "--text", "red", "--json").stdout)["strength"]
    assert "30 are needed" in strength["reason"] and strength["percent"] is None
    again = json.loads(run("index", "--json").stdout)
    assert again == [row | {"encoded": 0} for row in rows]
