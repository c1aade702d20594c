"""What kinds ask: hubs against counting, facets over copies, lost tokens, and why a kind cannot be told."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analyze import about as about_module
from core.analyze.about import About, TaskFacts, hubs_of
from core.analyze.failures import KINDS
from core.media.phash import Hashes
from core.models import specs
from core.models.base import ModelUnavailable

PAIR = {kind.name for kind in KINDS if kind.needs == "ablation"}
PICTURES = {"picture missing", "picture unreadable", "picture blank"}


def counted(tens: list[list[int]], documents: int) -> dict[int, int]:
    """Hubs by counting, the percentile by the rule of linear interpolation written out."""
    counts = Counter(row for ten in tens for row in ten)
    every = sorted([*counts.values(), *[0] * (documents - len(counts))])
    place = 0.99 * (len(every) - 1)
    low = int(place)
    bound = every[low] + (place - low) * (every[min(low + 1, len(every) - 1)] - every[low])
    return {row: n for row, n in counts.items() if n >= 5 and n > bound + 1e-9}


@given(st.lists(st.sets(st.integers(0, 30), max_size=10).map(sorted), max_size=25), st.integers(31, 4000))
def test_hubs_against_counting(tens: list[list[int]], documents: int) -> None:
    assert hubs_of([np.array(ten, int) for ten in tens], documents) == counted(tens, documents)


def test_a_hub_is_in_five_first_tens_and_above_99_percent_of_the_documents() -> None:
    fives = [np.array([7, 100 + at]) for at in range(5)]
    assert hubs_of(fives, 1000) == {7: 5}
    assert hubs_of(fives[:4], 1000) == {}
    crowd = [np.arange(10)] * 9  # ten documents come up in every first ten
    assert hubs_of(crowd, 2000) == dict.fromkeys(range(10), 9)
    assert hubs_of(crowd, 900) == {}  # they are more than one percent of these
    assert hubs_of([], 10) == {} and hubs_of([np.zeros(0, int)], 0) == {}


@pytest.fixture
def copied(new_study):
    """Two domains that share a sentence under other specialties, and one sentence that stands twice in one of them."""
    study = new_study()
    study.doc("a", "one sentence", specialty="Neurology", modality=None)
    study.doc("b", "one sentence", domain="Thorax", specialty="Cardiology", modality="MR")
    study.doc("alone", "another", specialty=None)
    study.doc("b again", "one sentence", domain="Thorax", specialty=None)
    study.query("q", "words")
    study.query("r", "words", domain="Thorax")
    return study


def facts_of(study, scope: str = "pool", dataset=None) -> TaskFacts:
    dataset = dataset or study.open()
    return TaskFacts(dataset, study.places(dataset, scope), Hashes(None))


def row(facts: TaskFacts, domain: str, name: str) -> int:
    return facts.pool.row_of(f"case_study/{domain}", name)


def test_facets_of_copies_are_joined_in_a_pool_and_not_in_collections(copied) -> None:
    pool, apart = facts_of(copied), facts_of(copied, "collections")
    for domain, name in (("Head", "a"), ("Thorax", "b"), ("Thorax", "b again")):
        one = row(pool, domain, name)
        assert pool.facets_of("specialty", one) == {"Neurology", "Cardiology"}
        assert pool.facets_of("domain", one) == {"Head", "Thorax"} and pool.facets_of("modality", one) == {"MR", "CT"}
    assert pool.facets_of("specialty", row(pool, "Head", "alone")) == set()
    assert apart.facets_of("specialty", row(apart, "Head", "a")) == {"Neurology"}
    assert apart.facets_of("specialty", row(apart, "Thorax", "b")) == {"Cardiology"}
    assert apart.facets_of("specialty", row(apart, "Thorax", "b again")) == set()


def lacking(facts: TaskFacts, model: str, ablation: str = "") -> dict[str, str]:
    about = About(facts, model, {})
    return {kind.name: why for kind in KINDS if (why := about.lacks(kind.needs, ablation))}


def test_what_cannot_be_told_says_why(small) -> None:
    dataset = small.open()
    pool = facts_of(small, dataset=dataset)
    assert lacking(pool, "medlite") == {}
    found = lacking(pool, "bm25", "bm25 reads one side")
    assert {name: found.pop(name) for name in PAIR} == dict.fromkeys(PAIR, "N/A: bm25 reads one side")
    assert {name: found.pop(name) for name in PICTURES} == dict.fromkeys(PICTURES, "N/A: it reads words only")
    assert found == {"text truncated": "N/A: it reads every word"}
    assert lacking(pool, "minilm") == dict.fromkeys(PICTURES, "N/A: it reads words only")
    assert lacking(pool, "rrf:bm25+medlite") == {}
    assert lacking(pool, "zsum:bm25+minilm") == dict.fromkeys(PICTURES, "N/A: it reads words only")
    unknown = {"text truncated": "N/A: how long a text it reads is not known here"}
    assert lacking(pool, "somebody's") == lacking(pool, "rrf:bm25+somebody's") == unknown
    assert lacking(facts_of(small, "collections", dataset), "medlite") == {
        "wrong domain": "N/A: one domain at a time is searched"
    }


def test_data_without_facets_and_pictures(new_study) -> None:
    study = new_study()
    study.doc("d", "words", specialty=None, modality=None)
    study.query("q", "words")
    facts = facts_of(study)
    assert not facts.has_facet("domain") and not facts.has_facet("specialty")
    assert lacking(facts, "medlite") == {
        "wrong domain": "N/A: one domain at a time is searched",
        "wrong specialty": "N/A: the documents name no specialty",
        "wrong modality": "N/A: the documents name no modality",
    } | dict.fromkeys(PICTURES, "N/A: no query has a picture")


def test_without_the_tokenizer_nothing_is_said_of_lost_words(small, monkeypatch) -> None:
    def missing(texts):
        raise ModelUnavailable("Install it.")

    facts = facts_of(small)
    monkeypatch.setattr(about_module, "count_tokens", missing)
    assert lacking(facts, "medlite") == {"text truncated": "N/A: Install it."}
    assert lacking(facts, "bm25")["text truncated"] == "N/A: it reads every word"


def test_lost_tokens_of_each_model(new_study, monkeypatch) -> None:
    """A token a character here, so that limits of 256 are met by counting."""
    monkeypatch.setattr(about_module, "count_tokens", lambda texts: np.array([len(text) for text in texts], np.int64))
    study = new_study()
    study.doc("long", "x" * 300)
    study.doc("longer", "y" * 400)
    study.doc("short", "z" * 256)
    for name, length in (("fits", 256), ("cut", 257)):
        study.query(name, f" {'w' * length} ")
    facts = facts_of(study)
    fits, cut = (facts.dataset.collections["case_study/Head"].query(name) for name in ("fits", "cut"))
    long, longer, short = (row(facts, "Head", name) for name in ("long", "longer", "short"))
    own = "1 of 257 tokens of the words are not read"
    for model in ("medlite", "minilm", "late", "rrf:bm25+medlite"):
        about = About(facts, model, {})
        assert about.lost(fits, [short]) == about.lost(fits, []) == ""
        assert about.lost(cut, [short]) == own
        assert about.lost(fits, [long]) == "the relevant document is cut: at least 44 of 300 tokens are not read"
        both = "each of 2 relevant documents is cut: at least 44 of 300 tokens are not read"
        assert about.lost(fits, [longer, long]) == both and about.lost(cut, [long, longer]) == f"{own}; {both}"
        assert about.lost(fits, [long, short]) == ""
    assert "passage" in specs.get("minilm-maxp").limits  # it reads documents in passages, queries not
    assert About(facts, "minilm-maxp", {}).lost(cut, [long]) == own


def test_each_text_is_counted_once(small, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(
        about_module, "count_tokens", lambda texts: asked.extend(texts) or np.ones(len(texts), np.int64)
    )
    facts = facts_of(small)
    assert facts.tokens(["a", "b", "a"]) == [1, 1, 1] and facts.tokens(["b", "c"]) == [1, 1]
    assert asked == ["a", "b", "c"]


def test_a_picture_is_opened_once_and_each_problem_is_named(new_study, picture_of) -> None:
    study = new_study()
    study.picture("seen", picture_of(0))
    study.picture("broken", b"no picture")
    study.picture("blank", np.full((32, 32), 90))
    study.doc("d", "words")
    names = ("seen", "gone", "blank", "broken", "gone too")
    study.query("q", "words", [f"images/{name}.png" for name in names])
    study.query("w", "words")
    facts = facts_of(study)
    collection = facts.dataset.collections["case_study/Head"]
    for _ in range(2):
        found = facts.picture_problems(collection.query("q"))
        assert sorted(found) == ["blank", "missing", "unreadable"]
        assert found["missing"].startswith("images/gone.png: ") and found["blank"].startswith("images/blank.png ")
        assert facts.picture_problems(collection.query("w")) == {}
        facts._hashes = SimpleNamespace(of=lambda data: pytest.fail("opened twice"))


def test_twins_are_looked_for_among_all_copies(copied) -> None:
    copied.doc("the same", "ONE sentence", domain="Thorax")
    facts = facts_of(copied)
    mine, other, alone = row(facts, "Thorax", "the same"), row(facts, "Head", "a"), row(facts, "Head", "alone")
    assert facts.twin(mine, [other]) == "the same text as relevant a"
    assert facts.twin(mine, [alone]) == "" and facts.twin(mine, []) == ""
    assert facts.twin(mine, [other, alone]) == facts.twin(mine, [alone, other]) != ""
