"""Search one pool with a picture and words: exact or HNSW, filtered, with shares and judgements."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from PIL import Image

from core.data.dataset import DataSet, silent
from core.data.names import trec_id
from core.embed.centring import SEED, Centre, centre_of, centred
from core.embed.pipeline import Pipeline, Progress, text_key
from core.index.nearest import nearest
from core.index.pool_index import LEFT_OUT, pool_index, recall_at
from core.records import Hit, Query, QueryError, SearchResult, Strength
from core.search.compose import ComposedQuery, compose
from core.search.strength import FILE, Calibration, mode_of, not_calibrated, open_calibration, save
from core.store.atomic import write_bytes
from core.store.manifest import ManifestError

RECALL_QUERIES = 100
"""Queries of the data set on which HNSW's recall is measured."""

MAX_K = 1000

MAX_WORDS = 10_000
"""Characters of words that a query may have; every encoder here reads far fewer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What to search for. ``query`` is a query of the data set: its judgements mark the hits; ``trained_on`` says
    that the encoder was trained on its case. ``without``: documents (collection, id) that are no hits, nor are their
    copies; then the question is a document of the pool, and its best score says nothing about queries."""

    text: str = ""
    images: Sequence[Image.Image] = ()
    weight: float | None = None
    k: int = 10
    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    exact: bool = False
    query: Query | None = None
    trained_on: bool = False
    without: frozenset[tuple[str, str]] = frozenset()


class Searcher:
    """One pool, one encoder. Opening builds what is missing; searching needs no disk but the hit documents.

    ``with_graph=False``: exact search only, for figures. ``calibration`` is None until it was measured for this pool.
    """

    def __init__(
        self,
        dataset: DataSet,
        task: str,
        pipeline: Pipeline,
        progress: Progress = silent,
        with_graph: bool = True,
    ) -> None:
        self.dataset, self.task, self.pipeline = dataset, task, pipeline
        self.encoder = pipeline.encoder
        self._centres: dict[str, Centre] = {}
        self.index = pool_index(dataset, task, pipeline, progress, with_graph)
        self.pool = self.index.pool
        self._rows_of_group = _Members(self.index.group_of_row, len(self.index.vector_of_group))
        self._groups_of_vector = _Members(self.index.vector_of_group, len(self.index.exact.vectors))
        self.recall_at_10, self.recall_queries = self._recall(progress) if self.index.hnsw else (None, 0)
        self.calibration = self._stored_calibration()

    @property
    def strength_file(self) -> tuple[str, ...]:
        """Where this pool's match strength lies below a root of the store."""
        return ("index", self.dataset.data_id, f"pool-{self.task}", self.encoder.encoder_id, FILE)

    @property
    def strength_request(self) -> dict[str, Any]:
        """What a stored calibration is made for: no other data, judgements, pool, encoder or default weight."""
        return {
            "data_id": self.dataset.data_id,
            "qrels": self.dataset.qrels_name,
            "task": self.task,
            "encoder_id": self.encoder.encoder_id,
            "default_weight": self.default_weight,
        }

    def _stored_calibration(self) -> Calibration | None:
        for root in self.pipeline.workspace.roots:
            try:
                return open_calibration(root.joinpath(*self.strength_file), self.strength_request)
            except ManifestError:
                continue  # absent, damaged or of another request: `python -m core index` makes it again
        return None

    def keep_calibration(self, calibration: Calibration) -> None:
        """Store a calibration of this pool in the workspace and use it from now on."""
        save(self.pipeline.workspace.path(*self.strength_file), self.strength_request, calibration)
        self.calibration = calibration

    def _centre(self, side: str, progress: Progress) -> Centre:
        if side not in self._centres:
            self._centres[side] = centre_of(self.dataset, side, self.pipeline, progress)
        return self._centres[side]

    @property
    def default_weight(self) -> float:
        """The encoder's default weight of the picture for documents of this kind."""
        return self.encoder.default_weight(self.pool.target)

    def compose(self, asked: Asked, progress: Progress = silent) -> tuple[ComposedQuery, list[str]]:
        """Encode and centre the sides of a query; the notes say what was cut or left out."""
        notes: list[str] = []
        image = text = None
        words = _checked(asked.text)
        progress("Reading the query (the first search loads the model)", 0, 0)
        if asked.images:
            vector = self.encoder.encode_images(list(asked.images))["single"].mean(axis=0)
            image = centred(vector, self._centre("image", progress))
        if words:
            out = self.encoder.encode_texts([words])
            if out["truncated"][0]:
                notes.append(f"The words are longer than {self.encoder.name} reads; their end was left out.")
            text = centred(out["single"][0], self._centre("text", progress))
        weight = self.default_weight if asked.weight is None else asked.weight
        return compose(image, text, weight), notes

    def search(self, asked: Asked, progress: Progress = silent) -> SearchResult:
        """Rank the pool. Fewer than k hits come back only when fewer documents pass the filters.

        Raises QueryError for an empty query, a weight outside 0…1, k outside 1…1000, or an unknown filter.
        """
        started = time.perf_counter()
        self.pool.mask(asked.filters)  # a filter that does not exist is refused before anything is encoded
        query, notes = self.compose(asked, progress)
        result = self.find(query, asked)
        if not len(self.index.exact.vectors):
            notes.append("No document of this task could be encoded; python -m core check says why.")
        return replace(result, notes=tuple(notes), seconds=time.perf_counter() - started)

    def find(self, query: ComposedQuery, asked: Asked) -> SearchResult:
        """Rank the pool for a query that is composed already; ``asked`` gives k, filters, judgements and exactness.

        Of two results of one query the one with the smaller k is the beginning of the other, but for what HNSW misses.
        """
        if not 1 <= asked.k <= MAX_K:
            raise QueryError(f"k is {asked.k}; it must lie between 1 and {MAX_K}.")
        started = time.perf_counter()
        mask = self.pool.mask(asked.filters)
        left_out = self._left_out(asked)
        allowed = self._allowed(mask)
        found, kind = self._candidates(query, asked.k + len(left_out), allowed, asked.exact)
        shares = self.index.exact.scores(query.sides, found)
        hits = self._hits(found, shares, mask, left_out, asked)
        searchable = self.index.group_of_row != LEFT_OUT
        relevant, best_relevant = self._best_relevant(query, hits, asked)
        return SearchResult(
            hits=tuple(hits),
            weight=query.weight,
            index_kind=kind,
            recall_at_10=self.recall_at_10 if kind == "hnsw" else None,
            searched=int(np.sum(searchable if mask is None else searchable & mask)),
            model=self.encoder.name,
            seconds=time.perf_counter() - started,
            strength=self._strength(hits, query, asked),
            relevant=relevant,
            best_relevant=best_relevant,
        )

    def permitted(self, asked: Asked) -> np.ndarray:
        """int [contents]: the row that stands for each content in a search for ``asked``, −1 where it is no hit."""
        rows = self.index.group_of_row != LEFT_OUT
        mask = self.pool.mask(asked.filters)
        if mask is not None:
            rows &= mask
        rows[list(self._left_out(asked))] = False
        found = np.flatnonzero(rows)[::-1]  # the first row of a content is written last
        result = np.full(len(self.index.vector_of_group), -1)
        result[self.index.group_of_row[found]] = found
        return result

    def _left_out(self, asked: Asked) -> set[int]:
        """Rows that are no hits whatever they score: the query itself, and documents that were excluded."""
        rows = self._own_rows(asked.query)
        for key in asked.without:
            row = self.pool.row_of(*key)
            if row is not None and self.index.group_of_row[row] != LEFT_OUT:
                rows |= set(self._rows_of_group[self.index.group_of_row[row]])
        return rows

    def _strength(self, hits: Sequence[Hit], query: ComposedQuery, asked: Asked) -> Strength | None:
        if not hits:
            return None
        if asked.without:
            return not_calibrated("it was measured on queries, and this one is a document of the pool")
        if asked.trained_on:
            return not_calibrated("the model was trained on this query's case, so its score says nothing")
        if self.calibration is None:
            return not_calibrated("it was not measured for this data set yet; python -m core index does it")
        filtered = any(asked.filters.values())
        return self.calibration.strength(hits[0].score, mode_of(query), query.weight, filtered)

    def _best_relevant(self, query: ComposedQuery, hits: Sequence[Hit], asked: Asked) -> tuple[int, int | None]:
        """How many permitted contents are relevant to the data set's own query, and the rank of the best of them."""
        grades = self._grades(asked.query)
        if not grades:
            return 0, None
        passing = self.permitted(asked)
        relevant = [g for g, grade in grades.items() if grade > 0 and g != LEFT_OUT and passing[g] >= 0]
        if not relevant:
            return 0, None
        found = next((hit.rank for hit in hits if (hit.relevance or 0) > 0), None)
        if found is not None:
            return len(relevant), found
        shares = self.index.exact.scores(query.sides)
        scores = (shares[:, 0] + shares[:, 1])[self.index.vector_of_group]
        best = max(scores[g] for g in relevant)
        above = int(np.sum((scores > best) & (passing >= 0)))
        tied = np.flatnonzero((scores == best) & (passing >= 0))
        if len(tied) > 1:  # trec_eval's order: of equal scores the greater id comes first
            names = {int(g): trec_id(*self.pool.key(int(passing[g]))) for g in tied}
            first = max(names[g] for g in relevant if g in names)
            above += sum(name > first for name in names.values())
        return len(relevant), max(above, len(hits)) + 1

    def _own_rows(self, query: Query | None) -> set[int]:
        """Rows that are the query itself, where the data set says a document never answers its own id.

        A copy of it under the same id in another collection is the query itself too.
        """
        if query is None or not self.dataset.ignore_identical_ids:
            return set()
        row = self.pool.row_of(query.collection, query.id)
        if row is None or self.index.group_of_row[row] == LEFT_OUT:
            return set()
        copies = self._rows_of_group[self.index.group_of_row[row]]
        return {r for r in copies if self.pool.key(r)[1] == query.id}

    def _allowed(self, mask: np.ndarray | None) -> np.ndarray | None:
        """bool [vectors]: those with at least one permitted document, or None for all."""
        if mask is None:
            return None
        groups = self.index.group_of_row[mask]
        permitted = np.zeros(len(self.index.exact.vectors), bool)
        permitted[self.index.vector_of_group[groups[groups != LEFT_OUT]]] = True
        return permitted

    def _candidates(
        self, query: ComposedQuery, k: int, allowed: np.ndarray | None, exact: bool
    ) -> tuple[np.ndarray, str]:
        """Vector rows that hold at least the k best permitted ones, and the index that found them."""
        return nearest(self.index.exact, None if exact else self.index.hnsw, query.sides, k, allowed)

    def _hits(
        self, vectors: np.ndarray, shares: np.ndarray, mask: np.ndarray | None, left_out: set[int], asked: Asked
    ) -> list[Hit]:
        grades = self._grades(asked.query)
        places = []
        for vector, (image_share, text_share) in zip(vectors, shares, strict=True):
            for group in self._groups_of_vector[vector]:
                rows = [r for r in self._rows_of_group[group] if r not in left_out]
                shown = next((r for r in rows if mask is None or mask[r]), None)
                if shown is not None:
                    score = float(np.float32(image_share + text_share))
                    name = trec_id(*self.pool.key(shown))
                    places.append((score, name, shown, group, len(rows), float(image_share), float(text_share)))
        # trec_eval's order: score descending, then id descending.
        places.sort(key=lambda p: (p[0], p[1]), reverse=True)
        hits = []
        for rank, (score, _, row, group, copies, image_share, text_share) in enumerate(places[: asked.k], 1):
            doc = self.pool.doc(row)
            relevance, meta = grades.get(group), dict(doc.meta)
            hits.append(Hit(rank, doc.collection, doc.id, score, image_share, text_share, relevance, meta, copies - 1))
        return hits

    def _grades(self, query: Query | None) -> dict[int, int]:
        """The best grade of each content that the query's collection judges: a hit is relevant if any copy is."""
        grades: dict[int, int] = {}
        if query is None:
            return grades
        for doc, grade in self.pool.collection(query.collection).qrels.get(query.id, {}).items():
            row = self.pool.row_of(query.collection, doc)
            if row is not None:
                group = int(self.index.group_of_row[row])
                grades[group] = max(grade, grades.get(group, grade))
        return grades

    def _recall(self, progress: Progress) -> tuple[float | None, int]:
        """Recall@10 of the graph against exact search on queries of the data set, measured once and stored."""
        path = self.index.folder / "hnsw" / "recall.json"
        try:
            stored = json.loads(path.read_bytes())
            return stored["recall_at_10"], stored["queries"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            pass  # not measured yet, or not readable: measured again
        vectors = self._probe_vectors(progress)
        recall = recall_at(10, self.index, vectors)
        write_bytes(path, json.dumps({"recall_at_10": recall, "queries": len(vectors)}).encode())
        return recall, len(vectors)

    def _probe_vectors(self, progress: Progress) -> np.ndarray:
        """Mixed vectors of a seeded sample of the pool's own queries, else of slightly moved documents."""
        keys = [(c.key, at) for c in self.pool.collections for at in range(len(c.queries))]
        chosen = sorted(random.Random(SEED).sample(keys, min(RECALL_QUERIES, len(keys))))
        by_key = {c.key: c for c in self.pool.collections}
        queries = [by_key[key].query_at(at) for key, at in chosen]
        composed = self.stored_queries(queries, None, progress)
        if any(c is not None for c in composed):
            return np.stack([c.mixed for c in composed if c is not None])
        generator = np.random.default_rng(SEED)
        vectors = np.asarray(self.index.exact.vectors)
        rows = generator.choice(len(vectors), min(RECALL_QUERIES, len(vectors)), replace=False)
        noise = generator.standard_normal((len(rows), vectors.shape[1])).astype(np.float32)
        return vectors[rows] + 0.5 * noise / np.sqrt(vectors.shape[1], dtype=np.float32)

    def stored_queries(
        self, queries: Sequence[Query], weight: float | None, progress: Progress = silent
    ) -> list[ComposedQuery | None]:
        """Compose queries of the data set through the vector store; None where neither side can be encoded."""
        pictures: dict[str, tuple] = {}
        keys: list[tuple[list[str], str]] = []
        for query in queries:
            collection = self.dataset.collections[query.collection]
            found = self.pipeline.picture_keys(collection, query.images)
            pictures |= {key: (collection, reference) for reference, key in found.items()}
            words = query.text.strip()
            keys.append((list(found.values()), text_key(words) if words else ""))
        self.pipeline.encode_pictures(pictures, progress)
        self.pipeline.encode_texts([q.text.strip() for q in queries], progress)
        return [self._composed(images, text, weight, progress) for images, text in keys]

    def _composed(self, images: list[str], text: str, weight: float | None, progress: Progress) -> ComposedQuery | None:
        sides = {}
        for side, wanted in (("image", images), ("text", [text])):
            store = self.pipeline.stores[side]
            known = [key for key in wanted if key and key in store]
            if known:
                sides[side] = centred(store.get(known).mean(axis=0), self._centre(side, progress))
        if not sides:
            return None
        return compose(sides.get("image"), sides.get("text"), self.default_weight if weight is None else weight)


def _checked(text: str) -> str:
    """The words without blanks at their ends; raises QueryError where they cannot be encoded."""
    words = text.strip()
    if len(words) > MAX_WORDS:
        raise QueryError(f"The words have {len(words):,} characters; at most {MAX_WORDS:,} are read. Shorten them.")
    try:
        words.encode()
    except UnicodeEncodeError:
        raise QueryError("The words hold half of a surrogate pair, which is not valid text. Type them again.") from None
    return words


class _Members:
    """Positions of each label 0…n−1 of int ``labels``; negative labels are passed over."""

    def __init__(self, labels: np.ndarray, n: int) -> None:
        self._order = np.argsort(labels, kind="stable")
        self._starts = np.searchsorted(labels[self._order], np.arange(n + 1))

    def __getitem__(self, label: int) -> list[int]:
        return self._order[self._starts[label] : self._starts[label + 1]].tolist()
