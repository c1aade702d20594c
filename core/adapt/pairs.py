"""What a head is trained on: pictures and the words that go with them, grouped by case and by topic.

Only queries are read, never the judgements: a query's picture and its words belong together because someone wrote
them about one case.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection as Names
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.data.collection import Collection
from core.data.dataset import DataSet
from core.data.health import is_template
from core.data.topics import cluster_of
from core.embed.pipeline import Pipeline, text_key
from core.records import Doc, Query
from core.store.manifest import canonical


@dataclass(frozen=True, slots=True)
class Pair:
    """A picture and the words of a query: their content keys (sha256), the case and topic they belong to.

    The topic is the query's cluster (`core.data.topics.cluster_of`).
    """

    picture: str
    text: str
    case: str
    topic: str


@dataclass(frozen=True, slots=True)
class Pairs:
    """Distinct pairs sorted by case, picture and text, and where their contents are found.

    ``pictures``: key → (collection, reference); ``texts``: key → text; ``templates``: pairs left out because nobody
    filled in their words.
    """

    rows: tuple[Pair, ...]
    pictures: Mapping[str, tuple[Collection, str]]
    texts: Mapping[str, str]
    templates: int

    @property
    def topics(self) -> list[str]:
        """The distinct topics, sorted."""
        return sorted({pair.topic for pair in self.rows})

    @property
    def cases(self) -> list[str]:
        """The distinct cases, sorted."""
        return sorted({pair.case for pair in self.rows})

    def of(self, topics: Names[str]) -> tuple[Pair, ...]:
        """The pairs of these topics."""
        return tuple(pair for pair in self.rows if pair.topic in topics)


def case_of(query: Query) -> str:
    """``meta.case``, else a name of the query's own."""
    case = query.meta.get("case")
    return str(case) if case not in (None, "") else f"{query.collection}/{query.id}"


def case_of_doc(doc: Doc) -> str:
    """``meta.case`` of a document, '' where it is not stated."""
    value = doc.meta.get("case")
    return "" if value is None else str(value)


def topic_of_doc(doc: Doc) -> str:
    """The topic of a document, spelled as `core.data.topics.cluster_of` does for queries; '' where not stated."""
    for kind in ("cluster", "case"):
        if doc.meta.get(kind) not in (None, ""):
            return f"{kind}:{doc.meta[kind]}"
    return ""


def queries_of(dataset: DataSet, split: str = "") -> Iterable[Query]:
    """All queries of all tasks, or those whose ``meta.split`` is ``split``."""
    for key in sorted(dataset.collections):
        for query in dataset.collections[key].all_queries():
            if not split or query.meta.get("split") == split:
                yield query


def training_pairs(dataset: DataSet, pipeline: Pipeline, split: str = "") -> Pairs:
    """The distinct (picture bytes, words) of all queries of a split, every task; '' means every query.

    Words are stripped; template text ("Replace this - …") makes no pair. A picture that cannot be found makes none.
    """
    rows: dict[Pair, None] = {}
    pictures: dict[str, tuple[Collection, str]] = {}
    texts: dict[str, str] = {}
    templates: set[tuple[str, str]] = set()
    by_collection: dict[str, list[Query]] = {}
    for query in queries_of(dataset, split):
        by_collection.setdefault(query.collection, []).append(query)
    for name, queries in by_collection.items():
        collection = dataset.collections[name]
        keys = pipeline.picture_keys(collection, [r for q in queries for r in q.images])
        for query in queries:
            words = query.text.strip()
            for reference in (r for r in query.images if words and r in keys):
                if is_template(words):
                    templates.add((keys[reference], words))
                    continue
                pair = Pair(keys[reference], text_key(words), case_of(query), cluster_of(query))
                rows[pair] = None
                pictures.setdefault(pair.picture, (collection, reference))
                texts.setdefault(pair.text, words)
    ordered = sorted(rows, key=lambda p: (p.case, p.picture, p.text, p.topic))
    return Pairs(tuple(ordered), pictures, texts, len(templates))


def case_record(pairs: Sequence[Pair]) -> dict[str, dict[str, Any]]:
    """What a model card names of each case: ``sha256`` of its pairs and the sha256 of each of its pictures.

    The case's sha256 is that of the canonical JSON of its sorted [picture sha256, text sha256] pairs. Pictures are
    named too, so that a case is known again in a data set that holds other tasks, splits or captions of it.
    """
    by_case: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_case.setdefault(pair.case, []).append(pair)
    return {
        case: {
            "sha256": hashlib.sha256(canonical(sorted([p.picture, p.text] for p in rows))).hexdigest(),
            "pictures": sorted({p.picture for p in rows}),
        }
        for case, rows in sorted(by_case.items())
    }
