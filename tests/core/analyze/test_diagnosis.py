"""Diagnoses against plain loops over run and judgements, and where they are kept, made again and judged anew."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from core.analyze import diagnosis as diagnosis_module
from core.analyze.desk import Desk
from core.analyze.diagnosis import FILE, Diagnosis
from core.analyze.examine import SHOWN
from core.analyze.failures import KINDS, UNJUDGED
from core.analyze.rejudge import Overlay
from core.data.topics import cluster_of
from core.evaluate.measures import per_query
from core.evaluate.run import open_run
from core.models import tokens
from core.store.manifest import ManifestError

TASK = "case_study"
PAIR = {kind.name for kind in KINDS if kind.needs == "ablation"}


def key(domain: str, name: str) -> tuple[str, str]:
    return f"{TASK}/{domain}", name


def diagnosed(study, dataset, overlay: Overlay | None = None, scope: str | None = None, label: str = "") -> Diagnosis:
    """By a desk of its own, so that nothing is in memory."""
    desk = study.desk(dataset)
    runs, _ = desk.runs(TASK, scope)
    return desk.diagnosis(next(run for run in runs if not label or run.label == label), overlay)


def same(a: Diagnosis, b: Diagnosis) -> bool:
    """Whether two diagnoses say the same of everything."""
    for name in ("run_ids", "queries", "clusters", "found", "not_available", "top", "depth", "overlay", "label"):
        if getattr(a, name) != getattr(b, name):
            return False
    arrays = [({"first": a.first}, {"first": b.first}), (a.values, b.values), (a.ablation, b.ablation)]
    if any(x.keys() != y.keys() or any(not np.array_equal(x[n], y[n], True) for n in x) for x, y in arrays):
        return False
    n = range(len(a.queries))
    return all(a.hits(i) == b.hits(i) and a.relevant(i) == b.relevant(i) and a.kinds(i, 3) == b.kinds(i, 3) for i in n)


@pytest.mark.parametrize("scope", ["pool", "collections"])
def test_against_loops_over_run_and_judgements(small, scope) -> None:
    small.query("nobody judged", "words")
    small.rank("nobody judged", ["d1", "d2"])
    small.judge("q3", "d4", 1)  # a second relevant document
    small.judge("q3", "d9", 1)
    dataset = small.open()
    made = small.store(dataset, scope=scope)
    found = diagnosed(small, dataset, scope=scope)
    stored = [open_run(one.folder) for one in made]
    expected = []
    for run, place in zip(stored, small.places(dataset, scope), strict=True):
        pool = dataset.pool(TASK)
        names = {place.ids[answer]: pool.key(row) for row, answer in place.answer_of_row.items()}
        for query, name in zip(place.queries, place.query_ids, strict=True):
            grades = {names[doc]: grade for doc, grade in place.qrels[name].items()}
            if not any(grade > 0 for grade in grades.values()):
                continue
            docs = [(names[doc], score) for doc, score in run.run.rankings[name]]
            ranks = {doc: rank for rank, (doc, _) in enumerate(docs, 1)}
            good = sorted((-grade, doc) for doc, grade in grades.items() if grade > 0)
            relevant = [(doc, -grade, ranks.get(doc, 0)) for grade, doc in good]
            hits = [(doc, score, grades.get(doc, UNJUDGED)) for doc, score in docs[:SHOWN]]
            values = {measure: by_query[name] for measure, by_query in run.measures.items()}
            expected.append(((query.collection, query.id), query, hits, relevant, values))
    expected.sort(key=lambda one: one[0])
    assert [(q.collection, q.id) for q in found.queries] == [one[0] for one in expected] and len(expected) == 12
    for i, (name, query, hits, relevant, values) in enumerate(expected):
        assert found.at(name) == i and found.queries[i] == query and found.clusters[i] == cluster_of(query)
        assert found.hits(i) == hits and found.relevant(i) == relevant
        first = min((rank for _, _, rank in relevant if rank), default=0)
        assert found.first[i] == first and found.first.dtype == np.int32
        assert {measure: column[i] for measure, column in found.values.items()} == values
        for k in (1, 3, 10):
            assert found.failed(k)[i] == (not any(0 < rank <= k for _, _, rank in relevant))
        assert found.domain(i) == name[0].partition("/")[2]
        top = dataset.collections[hits[0][0][0]] if hits else None
        assert found.top[i]["domain"] == (top.domain if top else "")
    assert found.at(key("Head", "nobody judged")) is None and found.at(key("Head", "nothing")) is None
    assert found.depth == 1000 and found.label == "medlite" and found.overlay == "" and found.seen_excluded == 0
    assert found.run_ids == tuple(run.info.run_id for run in stored)


def test_a_measure_that_was_not_stored_is_nan(small) -> None:
    """Collections that judge nothing as not relevant have no Judged@10."""
    small.qrels = {domain: [row for row in rows if row[2]] for domain, rows in small.qrels.items()}
    dataset = small.open()
    small.store(dataset)
    found = diagnosed(small, dataset)
    assert "Judged@10" not in found.values and np.isnan(found.measured("Judged@10")).all()
    assert len(found.measured("Judged@10")) == len(found.queries) == 12
    assert np.array_equal(found.measured("nDCG@10"), found.values["nDCG@10"])


def test_a_measure_that_some_collections_lack_is_nan_there(small) -> None:
    small.qrels["Head"] = [row for row in small.qrels["Head"] if row[2]]
    dataset = small.open()
    small.store(dataset, scope="collections")
    found = diagnosed(small, dataset)
    absent = [query.collection == f"{TASK}/Head" for query in found.queries]
    assert np.isnan(found.values["Judged@10"]).tolist() == absent and not np.isnan(found.values["nDCG@10"]).any()


def test_copies_in_a_pool_are_one_hit_relevant_if_any_copy_is(new_study) -> None:
    study = new_study()
    study.doc("mine", "one sentence", specialty="Neurology")
    study.doc("theirs", "one sentence", domain="Thorax", specialty="Cardiology")
    study.doc("theirs too", "one sentence", domain="Thorax", specialty="Surgery")
    study.doc("else", "another", domain="Thorax", specialty="Surgery")
    study.query("q", "asked in Thorax", domain="Thorax", specialty="Surgery")
    study.judge("q", "theirs", 1, "Thorax")
    study.judge("q", "theirs too", 2, "Thorax")
    study.judge("q", "else", 0, "Thorax")
    study.rank("q", [("Thorax", "else"), ("Head", "mine"), ("Thorax", "theirs")], domain="Thorax")
    dataset = study.open()
    study.store(dataset)
    found = diagnosed(study, dataset)
    assert [(doc, grade) for doc, _, grade in found.hits(0)] == [(key("Thorax", "else"), 0), (key("Head", "mine"), 2)]
    assert found.relevant(0) == [(key("Head", "mine"), 2, 2)] and found.first.tolist() == [2]
    study.rank("q", [("Thorax", "theirs"), ("Thorax", "else")], domain="Thorax")
    study.store(dataset, depth=999)
    deeper = study.desk(dataset)
    shallow = next(run for run in deeper.runs(TASK)[0] if run.runs[0].info.depth == 1000)
    assert shallow  # the deeper of two counts
    first = Desk(dataset, study.workspace, deeper.hashes).diagnosis(
        dataclasses.replace(shallow, runs=(open_run(study.store(dataset, depth=999)[0].folder),))
    )
    assert first.hits(0)[0][0] == key("Head", "mine") and first.top[0]["specialty"] == "Surgery"
    assert "wrong domain" not in first.found[0]  # a copy of it is of the right one


def test_the_ablation_is_the_mean_over_its_runs_and_nan_where_it_was_not_asked(small) -> None:
    small.rank("q0", ["d1", "d2", "d0"], "picture")
    small.rank("q0", ["d1", "d0"], "words")
    for seed, hits in enumerate((["d0"], ["d1", "d0"], ["d1"], ["d1"], ["d1"])):
        small.rank("q0", hits, f"swapped-{seed}")
    small.rank("q1", [], "swapped-3")  # nobody to swap with
    dataset = small.open()
    for scope in ("pool", "collections"):
        small.store(dataset, scope=scope, ablation=True)
        found = diagnosed(small, dataset, scope=scope)
        i = found.at(key("Head", "q0"))
        assert list(found.ablation) == ["full", "picture", "words", "swapped"]
        assert {name: values[i] for name, values in found.ablation.items()} == pytest.approx(
            {"full": 1, "picture": 0.5, "words": 1 / np.log2(3), "swapped": (1 + 1 / np.log2(3)) / 5}
        )
        assert np.isfinite(np.stack(list(found.ablation.values()))).all(axis=0).sum() == 9
        for name in ("q1", "q5"):
            at = found.at(key("Head", name))
            assert all(np.isnan(values[at]) for values in found.ablation.values())
            assert not PAIR & set(found.found[at])
        assert not PAIR & set(found.not_available)


def test_models_without_an_ablation_say_why(small) -> None:
    dataset = small.open()
    small.store(dataset)
    small.store(dataset, "bm25", weight=None)
    small.store(dataset, "rrf:bm25+medlite", fusion="rrf of bm25 none None and medlite centred 0.6", weight=None)
    small.store(dataset, "theirs", fusion="imported", weight=None, index_kind="imported")
    small.store(dataset, "theirs", "collections", fusion="imported", weight=None, index_kind="imported")
    why = {
        "medlite": "python -m core evaluate DATA --model medlite --ablation makes them",
        "bm25": "N/A: bm25 reads one side",
        "rrf:bm25+medlite": "N/A: rrf:bm25+medlite is a hybrid",
        "theirs": "N/A: the runs of theirs were imported",
    }
    for label, words in why.items():
        found = diagnosed(small, dataset, label=label)
        assert (
            found.ablation == {} and {name for name, reason in found.not_available.items() if words in reason} == PAIR
        )
        assert all(reason.startswith("N/A: ") and reason.count("N/A") == 1 for reason in found.not_available.values())
        assert not any(set(kinds) & set(found.not_available) for kinds in found.found)
    apart = diagnosed(small, dataset, scope="collections")
    assert apart.run.label == "theirs" and len(apart.run_ids) == 2
    assert apart.not_available["wrong domain"] == "N/A: one domain at a time is searched"
    assert apart.not_available["text truncated"] == "N/A: how long a text it reads is not known here"


def made_again(monkeypatch) -> list:
    """What is examined from now on, by the label of the run."""
    asked = []
    real = diagnosis_module.examine

    def counted(dataset, run, *rest):
        asked.append(run.label)
        return real(dataset, run, *rest)

    monkeypatch.setattr(diagnosis_module, "examine", counted)
    return asked


def test_what_is_stored_is_read_back_equal_and_else_made_again(small, monkeypatch) -> None:
    dataset = small.open()
    small.store(dataset)
    asked = made_again(monkeypatch)
    fresh = diagnosed(small, dataset)
    assert asked == ["medlite"]
    assert same(diagnosed(small, dataset), fresh) and len(asked) == 1
    (path,) = small.workspace.path("diagnosis").rglob(FILE)
    assert path.relative_to(small.workspace.path("diagnosis")).parts[:2] == (dataset.data_id, f"{TASK}-pool")
    stored = path.read_bytes()

    def damage(content: bytes) -> None:
        path.write_bytes(content)
        assert same(diagnosed(small, dataset), fresh)

    damage(stored[:-1])
    damage(stored[:50] + bytes([stored[50] ^ 1]) + stored[51:])  # of the same size
    path.unlink()
    assert same(diagnosed(small, dataset), fresh)
    (path.parent / "manifest.json").write_text("{}")
    assert same(diagnosed(small, dataset), fresh) and len(asked) == 5
    monkeypatch.setattr(diagnosis_module, "FORMAT", diagnosis_module.FORMAT + 1)
    assert same(diagnosed(small, dataset), fresh) and len(asked) == 6
    assert same(diagnosed(small, dataset), fresh) and len(asked) == 6


def test_an_installed_tokenizer_is_noticed(small, monkeypatch) -> None:
    dataset = small.open()
    small.store(dataset)
    if "text truncated" in diagnosed(small, dataset).not_available:
        pytest.skip("the package with the tokenizer is not installed")
    asked = made_again(monkeypatch)
    with monkeypatch.context() as without:
        tokens._tokenizer.cache_clear()
        for module in (tokens, diagnosis_module):
            without.setattr(module, "text_folder", lambda: None)
        assert "Install" in diagnosed(small, dataset).not_available["text truncated"]
    assert "text truncated" not in diagnosed(small, dataset).not_available and len(asked) == 1


def test_an_ablation_that_comes_later_is_noticed(small, monkeypatch) -> None:
    dataset = small.open()
    small.store(dataset)
    asked = made_again(monkeypatch)
    assert diagnosed(small, dataset).ablation == {}
    small.store(dataset, ablation=True)
    found = diagnosed(small, dataset)
    assert len(asked) == 2 and found.ablation and "picture ignored" in found.found[0]


def test_a_full_disk_costs_time_and_nothing_else(small, monkeypatch) -> None:
    dataset = small.open()
    small.store(dataset)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(diagnosis_module, "atomic_folder", full)
    assert len(diagnosed(small, dataset).queries) == 12


def test_another_file_of_judgements_gives_another_diagnosis(small) -> None:
    dataset = small.open()
    small.store(dataset)
    before = diagnosed(small, dataset)
    for domain in ("Head", "Thorax"):
        folder = small.root / TASK / domain / "qrels"
        (folder / "anew.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td6\t2\nq3\td3\t1\nq3\td8\t0\n")
    other = small.open(qrels="anew")
    small.store(other, model="bm25")
    assert [run.label for run in small.desk(other).runs(TASK)[0]] == ["bm25"]  # medlite's is judged by the first file
    small.store(other)
    after = diagnosed(small, other, label="medlite")
    assert [(q.collection, q.id) for q in after.queries] == [
        key(d, q) for d in ("Head", "Thorax") for q in ("q0", "q3")
    ]
    assert after.run_ids != before.run_ids and after.first.tolist() == [2, 4, 2, 4]


def test_a_damaged_run_is_refused(small) -> None:
    dataset = small.open()
    (made,) = small.store(dataset)
    content = bytearray((made.folder / "run.trec.gz").read_bytes())
    content[-1] ^= 1
    (made.folder / "run.trec.gz").write_bytes(content)
    with pytest.raises(ManifestError, match=r"run\.trec\.gz does not have the content"):
        diagnosed(small, dataset)


def test_a_run_that_ranks_no_document_of_the_place_is_refused(small) -> None:
    """The first of two copies names both; a run that names the second was made when they differed."""
    small.doc("copy", "passage 6 of Head", domain="Thorax", specialty="Neurology")
    dataset = small.open()
    small.store(dataset)
    dataset.collections = dict(reversed(dataset.collections.items()))
    with pytest.raises(ManifestError, match=r"ranks 'case_study%2FHead/d6', no document of pool-case_study; delete it"):
        diagnosed(small, dataset)


def test_a_run_without_any_hit(small) -> None:
    dataset = small.open()
    small.store(dataset, rankings={})
    found = diagnosed(small, dataset)
    assert not found.first.any() and found.failed(1000).all() and found.hits(0) == []
    assert found.top[0] == {"domain": "", "specialty": "", "modality": ""}
    assert found.kinds(0, 10) == {"not retrieved": "no relevant document in the first 1,000"}


ANEW = {
    key("Head", "q1"): {key("Head", "d1"): 0, key("Thorax", "d6"): 2},  # another one is right
    key("Head", "q2"): {key("Head", "d2"): 0},  # nothing is: it leaves
    key("Thorax", "open"): {key("Thorax", "d7"): 1},  # it had no relevant document: it enters
    key("Thorax", "q3"): {key("Thorax", "d3"): 1},
}


@pytest.mark.parametrize("scope", ["pool", "collections"])
def test_judged_anew(small, scope, monkeypatch) -> None:
    small.query("open", "Nobody knew.", domain="Thorax")
    small.rank("open", ["d6", "d7"], domain="Thorax")
    dataset = small.open()
    small.store(dataset, scope=scope, ablation=True)
    overlay = Overlay(ANEW)
    asked = made_again(monkeypatch)
    old, new = (diagnosed(small, dataset, given, scope) for given in (None, overlay))
    assert new.overlay == overlay.hash and new.label == f"medlite, judged anew ({overlay.hash})" != old.label
    assert len(new.run_ids) == len(old.run_ids) and not set(new.run_ids) & set(old.run_ids)
    names = [(q.collection, q.id) for q in new.queries]
    gone = {key("Head", "q2")} if scope == "pool" else {key("Head", "q1"), key("Head", "q2")}
    assert set(names) == {(q.collection, q.id) for q in old.queries} - gone | {key("Thorax", "open")}
    assert names == sorted(names)
    for place, run in zip(small.places(dataset, scope), new.run.runs, strict=True):
        changed = {}
        for query, name in zip(place.queries, place.query_ids, strict=True):
            grades = dict(place.qrels[name])
            for (collection, doc), grade in ANEW.get((query.collection, query.id), {}).items():
                if collection in {member.key for member in place.collections}:
                    grades[place.ids[place.answer_of_row[place.pool.row_of(collection, doc)]]] = grade
            changed[name] = grades
        expected = per_query(run.run.rankings, changed, list(run.measures))
        for query, name in zip(place.queries, place.query_ids, strict=True):
            i = new.at((query.collection, query.id))
            assert (i is None) == (name not in expected["nDCG@10"])
            if i is not None:
                assert {m: values[i] for m, values in new.values.items()} == {m: v[name] for m, v in expected.items()}
                ranks = {doc: rank for rank, (doc, _) in enumerate(run.run.rankings[name], 1)}
                good = [ranks[doc] for doc, grade in changed[name].items() if grade > 0 and doc in ranks]
                assert new.first[i] == min(good, default=0)
    for i, name in enumerate(names):
        if name in ANEW:
            assert all(np.isnan(values[i]) for values in new.ablation.values()) and not PAIR & set(new.found[i])
            continue
        j = old.at(name)
        assert new.first[i] == old.first[j] and new.found[i] == old.found[j] and new.hits(i) == old.hits(j)
        assert all(new.values[m][i] == old.values[m][j] for m in old.values)
        assert all(np.array_equal(new.ablation[v][i], old.ablation[v][j], True) for v in old.ablation)
    assert len(list(small.workspace.path("diagnosis").rglob(FILE))) == 1  # only the data set's own judgements are kept
    assert same(diagnosed(small, dataset, None, scope), old) and asked == ["medlite"] * 2
    assert same(diagnosed(small, dataset, Overlay({}), scope), old) and asked == ["medlite"] * 2
