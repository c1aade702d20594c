"""Who answers which query, so that no figure comes from training data.

An encoder that saw none of a data set answers for itself. One that was trained on some of it is stood for by the heads
of a 5-fold cross-fitting: each query is answered by the head that saw neither its case nor its topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from core.adapt.crossfit import FOLDS, fold_encoders, fold_plan, seen
from core.adapt.crossfit import SEED as FOLD_SEED
from core.data.dataset import DataSet, silent
from core.embed.pipeline import Pipeline, Progress
from core.records import Query
from core.search.searcher import Searcher
from core.store.manifest import short_hash


@dataclass(frozen=True, slots=True)
class Answerer:
    """One pool searched by one encoder, and the queries of the pool that it may answer, in the pool's order."""

    searcher: Searcher
    queries: tuple[Query, ...]


class Fair:
    """The encoders that stand for the one of ``pipeline`` on a data set.

    ``fold_plan`` names the plan, and is "" where the encoder saw none of the data; ``source`` says the same in words.
    Fold heads that are missing are trained, and their vectors made, when this is built. ``as_shipped``: the encoder
    answers itself all the same.
    """

    def __init__(
        self,
        dataset: DataSet,
        pipeline: Pipeline,
        progress: Progress = silent,
        folds: int = FOLDS,
        seed: int = FOLD_SEED,
        as_shipped: bool = False,
    ) -> None:
        self.dataset, self.pipeline = dataset, pipeline
        self._plan, self.pipelines = None, [pipeline]
        self.fold_plan, self.source = "", "judged queries, none of which the model was trained on"
        if as_shipped:
            self.source = "the encoder itself, whatever it was trained on"
        elif trained_cases(dataset, pipeline):
            self._cross_fit(folds, seed, progress)

    def _cross_fit(self, folds: int, seed: int, progress: Progress) -> None:
        from core.adapt.features import Features
        from core.models.medlite import MedliteEncoder

        assert isinstance(self.pipeline.encoder, MedliteEncoder), "only medlite's head is trained here"
        self._plan = fold_plan(self.dataset, folds, seed)
        encoders = fold_encoders(self.dataset, self.pipeline.workspace, progress, folds=folds, seed=seed)
        self.pipelines = [Pipeline(encoder, self.pipeline.workspace) for encoder in encoders]
        features = Features(self.pipeline.encoder, self.pipeline.workspace)
        for pipeline in self.pipelines:
            features.fill(pipeline, self.dataset, progress)
        about = {"data_id": self.dataset.data_id, "folds": self._plan.folds, "seed": self._plan.seed}
        self.fold_plan = short_hash(about | {"topics": dict(self._plan.topics)})
        self.source = (
            f"judged queries, each answered by one of {self._plan.folds} heads that saw neither its case nor its topic"
        )

    def answerers(self, task: str, progress: Progress = silent, with_graph: bool = False) -> Iterator[Answerer]:
        """The pool of a task by each encoder; together they answer every query once."""
        queries = [query for collection in self.dataset.pool(task).collections for query in collection.all_queries()]
        for number, pipeline in enumerate(self.pipelines):
            mine = [q for q in queries if self._plan is None or self._plan.of_query(q) == number]
            yield Answerer(Searcher(self.dataset, task, pipeline, progress, with_graph), tuple(mine))


def trained_cases(dataset: DataSet, pipeline: Pipeline) -> set[str]:
    """The cases of the data set that the encoder's card names as training data; empty for an encoder without a card."""
    card = pipeline.encoder.card
    return seen(dataset, card, pipeline.workspace) if card is not None else set()
