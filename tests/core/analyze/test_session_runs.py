"""A run that a session brings: to the last bit what the same file is once it is stored, and nowhere on the disk."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace

import pytest

from core.analyze.league import DOMAIN, TASK, Leagues
from core.analyze.listed import listed
from core.analyze.session_runs import session_run
from core.data.dataset import open_dataset
from core.data.names import trec_id
from core.evaluate.evaluate import OFFLINE
from core.evaluate.measures import ALL
from core.evaluate.uploaded import Upload, read_upload, store_upload
from core.settings import DEMO
from core.store.workspace import open_workspace

STUDY, MEASURE = "case_study", "nDCG@10"
NEEDS_ZEROS = {"Judged@10", "bpref", "condensed nDCG@10"}


def text_of(small, domains: tuple[str, ...]) -> bytes:
    """What the study ranks within these domains, with ties, scores that are no 32-bit floats, and rankings of unequal
    length; other than the rankings of the study itself."""
    lines = []
    for (domain, query), hits in small.ranked["full"].items():
        own = [identity for (place, identity), _ in hits if place == domain and domain in domains]
        for at, doc in enumerate(own[int(query[1:]) % 2 :]):
            key = f"{STUDY}/{domain}"
            lines.append(f"{trec_id(key, query)} Q0 {trec_id(key, doc)} 0 {1 / (3 + at // 2)!r} t\n")
    return "".join(lines).encode()


def bring(small, dataset, domains: tuple[str, ...] = ("Head", "Thorax"), name: str = "theirs") -> Upload:
    return read_upload(text_of(small, domains), "their.run", dataset, STUDY, name, "v1")


@pytest.fixture
def two(small, tmp_path):
    """Makes the same study in two workspaces, both with a run of bm25: one to store in, one to bring to."""

    def make(positives_only: bool = False, qrels: str = "test"):
        if positives_only:
            small.qrels["Head"] = [row for row in small.qrels["Head"] if row[2]]
        other = replace(small, workspace=open_workspace(str(tmp_path / "other")))
        small.open()
        for domain in ("Head", "Thorax"):
            folder = small.root / STUDY / domain / "qrels"
            lines = (folder / "test.tsv").read_text().splitlines(keepends=True)
            (folder / "fewer.tsv").write_text("".join(line for line in lines if line[:2] not in ("q4", "q5")))
        datasets = [open_dataset(small.root, one.workspace, qrels) for one in (small, other)]
        assert datasets[0].data_id == datasets[1].data_id
        for one, dataset in zip((small, other), datasets, strict=True):
            one.store(dataset, "bm25", "collections")
        return datasets[0], small.workspace, datasets[1], other.workspace

    return make


def told(value) -> str:
    """Everything in it, NaN as a word: NaN is equal to nothing."""
    return repr(value)


@pytest.mark.parametrize("domains", [("Head", "Thorax"), ("Thorax",)])
@pytest.mark.parametrize("positives_only", [False, True])
@pytest.mark.parametrize("qrels", ["test", "fewer"])
def test_a_brought_run_is_what_the_stored_one_is(small, two, domains, positives_only, qrels) -> None:
    dataset, workspace, again, elsewhere = two(positives_only, qrels)
    upload = bring(small, dataset, domains)
    made = store_upload(upload, dataset, workspace)
    brought = session_run(bring(small, again, domains), again, elsewhere)
    absent = NEEDS_ZEROS if positives_only and "Head" in domains else set()
    assert list(brought.scored) == [name for name in ALL if name not in absent]
    for measure in ALL:
        stored = {run.name: run for run in listed(dataset, workspace, STUDY, measure)[0]}
        assert stored.get("theirs") == brought.scored.get(measure)
        if measure in brought.scored:
            found = brought.scored[measure]
            assert not any(map(math.isnan, found.values.values()))
            assert {key: found.clusters[key] for key in found.values} == {
                key: stored["theirs"].clusters[key] for key in found.values
            }
            assert (found.conditions["imported"], found.conditions["data_id"]) == (True, again.data_id)
            assert found.conditions["overlay"] == ("" if qrels == "test" else "qrels fewer")
    values = brought.scored[MEASURE].values
    counted = {"test": 6, "fewer": 4}[qrels] * len(domains)
    assert len(values) == counted and 0 < sum(values.values()) < counted
    assert set(brought.scored[MEASURE].run_ids) == {one.info.run_id for one in made}
    assert (brought.name, brought.model_id, brought.revision) == ("theirs", "theirs", "v1")
    assert (brought.data_id, brought.task, brought.notes) == (dataset.data_id, STUDY, upload.notes)
    lacking = [note for note in brought.notes if note.endswith("so Head is N/A.")]
    assert len(lacking) == (domains == ("Thorax",))


@pytest.mark.parametrize("domains", [("Head", "Thorax"), ("Thorax",)])
def test_leagues_and_complements_are_the_same_brought_or_stored(small, two, domains) -> None:
    dataset, workspace, again, elsewhere = two()
    store_upload(bring(small, dataset, domains), dataset, workspace)
    brought = session_run(bring(small, again, domains), again, elsewhere)
    stored_leagues, leagues = Leagues(dataset, workspace), Leagues(again, elsewhere)
    extra = list(brought.scored.values())
    for measure in brought.scored:
        for by in (DOMAIN, "specialty", "collection"):
            stored = stored_leagues.of(STUDY, measure, by).comparison
            found = leagues.of(STUDY, measure, by, extra).comparison
            assert {one.name for one in found.macro.standings} == {"bm25", "theirs"}
            assert told(found) == told(stored)
        for a, b in (("bm25", "theirs"), ("theirs", "bm25")):
            stored = stored_leagues.complement(STUDY, measure, a, b)
            found = leagues.complement(STUDY, measure, a, b, extra, {"theirs": brought.rankings})
            assert told(found) == told(stored)
    assert told(leagues.of(STUDY, MEASURE, TASK, extra).comparison) == told(
        stored_leagues.of(STUDY, MEASURE, TASK).comparison
    )
    whole = leagues.complement(STUDY, MEASURE, "bm25", "theirs", extra, {"theirs": brought.rankings})
    assert whole.n == 6 * len(domains) and math.isnan(whole.zsum.mean) == (len(domains) == 1)
    assert [run.name for run in leagues.of(STUDY, MEASURE).scored] == ["bm25"]  # nobody else sees it


def test_nothing_is_written(small, two) -> None:
    _, _, again, elsewhere = two()
    shutil.rmtree(elsewhere.path("runs"))
    before = sorted(elsewhere.root.rglob("*"))
    assert session_run(bring(small, again), again, elsewhere).scored
    assert sorted(elsewhere.root.rglob("*")) == before


def test_the_demos_own_run_brought_as_a_file_is_that_run(workspace) -> None:
    """bm25's shipped rankings, written as a pool spells ids: every figure is bm25's, and nothing is gained."""
    dataset = open_dataset(DEMO, workspace)
    leagues = Leagues(dataset, workspace)
    (bm25,) = (run for run in leagues.listed("visual_context", MEASURE)[0] if run.name == "bm25")
    lines = []
    for key, stored in leagues.stored(bm25).items():
        front = trec_id(key, "")
        for query, ranking in stored.run.rankings.items():
            lines += [f"{front}{query} Q0 {front}{doc} 0 {score:.9g} t\n" for doc, score in ranking]
    upload = read_upload("".join(lines).encode(), "bm25.run", dataset, "visual_context", "theirs")
    brought = session_run(upload, dataset, workspace)
    for measure, found in brought.scored.items():
        (same,) = (run for run in leagues.listed("visual_context", measure)[0] if run.name == "bm25")
        assert (found.values, found.domains) == (same.values, same.domains) and len(found.values) > 50
    extra, rankings = list(brought.scored.values()), {"theirs": brought.rankings}
    found = leagues.of("visual_context", MEASURE, extra=extra)
    assert [run.name for run in found.scored] == [*OFFLINE, "theirs"]
    pair = found.comparison.macro.pair("bm25", "theirs")
    assert pair.difference.mean == 0 and pair.verdict == "not established"
    both = leagues.complement("visual_context", MEASURE, "bm25", "theirs", extra, rankings)
    assert both.only_a.mean == both.only_b.mean == 0 and both.best_of_two.mean == both.mean_a.mean
    assert both.rrf.mean == both.mean_b.mean
