"""What kinds of failure ask about the data set and a run: facets, hubs, pictures, lost tokens, near-duplicates.

Everything is made when it is first asked for and kept for the runs of one task, because most of it is the same under
every model.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import numpy as np

from core.analyze.failures import FACETS, FEWEST_TOP_TENS, HUB_PERCENTILE
from core.data.dataset import DataSet
from core.evaluate.holes import Looks
from core.media.phash import Hashes
from core.media.picture import PictureError
from core.models import specs
from core.models.base import ModelUnavailable
from core.models.tokens import count_tokens
from core.records import Query
from core.retrievers.place import Place


class TaskFacts:
    """What is the same under every run of one task and scope: ``places`` are those it was ranked in.

    Safe to share between threads.
    """

    def __init__(self, dataset: DataSet, places: Sequence[Place], hashes: Hashes) -> None:
        self.dataset, self.places, self.pool = dataset, tuple(places), places[0].pool
        self._looks = Looks(dataset.collections, hashes, dataset.ignore_identical_ids)
        self._hashes, self._problems = hashes, {}
        self._tokens: dict[str, int] = {}
        self._lock = threading.RLock()

    @cached_property
    def _place_of_row(self) -> dict[int, tuple[Place, int]]:
        return {row: (place, answer) for place in self.places for row, answer in place.answer_of_row.items()}

    @cached_property
    def _facets(self) -> dict[str, list[str | None]]:
        """The value of each facet by pool row."""
        members = self.pool.collections
        columns = {name: [v for c in members for v in c.corpus.column(name).to_pylist()] for name in FACETS[1:]}
        return columns | {"domain": [c.domain for c in members for _ in range(len(c.corpus))]}

    @cached_property
    def _rows_of_answer(self) -> dict[tuple[str, int], list[int]]:
        """The pool rows of all copies of an answer, by (name of the place, answer)."""
        result: dict[tuple[str, int], list[int]] = {}
        for row, (place, answer) in self._place_of_row.items():
            result.setdefault((place.name, answer), []).append(row)
        return result

    def _copies(self, row: int) -> list[int]:
        """The rows of a document and its copies."""
        place, answer = self._place_of_row[row]
        return self._rows_of_answer[place.name, answer]

    def facets_of(self, facet: str, row: int) -> frozenset[str]:
        """The values of ``domain``, ``specialty`` or ``modality`` of a document (pool row) and of its copies."""
        values = self._facets[facet]
        return frozenset(value for one in self._copies(row) if (value := values[one]))

    def has_facet(self, facet: str) -> bool:
        """Whether any document names a value; of domains there must be several in one place."""
        if facet == "domain":
            return any(len({c.domain for c in place.collections}) > 1 for place in self.places)
        return any(self._facets[facet])

    def picture_problems(self, query: Query) -> dict[str, str]:
        """{"missing", "unreadable" or "blank": a sentence on the first picture of which that holds}."""
        found: dict[str, str] = {}
        with self._lock:
            for reference in query.images:
                key = (query.collection, reference)
                if key not in self._problems:
                    self._problems[key] = self._problem(*key)
                found.setdefault(*self._problems[key])
        found.pop("", None)
        return found

    def _problem(self, collection: str, reference: str) -> tuple[str, str]:
        try:
            blank = self._hashes.of(self.dataset.collections[collection].picture(reference)) is None
        except PictureError as error:
            return "missing" if error.kind in ("missing", "outside") else "unreadable", f"{reference}: {error}"
        return ("blank", f"{reference} has one shade only") if blank else ("", "")

    def twin(self, row: int, relevant: Sequence[int]) -> str:
        """Of which relevant document the one at ``row``, or a copy of it, is a near-duplicate, and by what; ""."""
        mine = [self.pool.key(one) for one in self._copies(row)]
        with self._lock:
            for other in sorted(relevant):
                theirs = [self.pool.key(one) for one in self._copies(other)]
                why = next((why for a in mine for b in theirs if (why := self._looks.alike(a, b))), "")
                if why:
                    name = self.pool.key(other)[1]
                    return f"{why}: relevant {name}" if "look alike" in why else f"{why} as relevant {name}"
        return ""

    def tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text before it is cut; raises ModelUnavailable without the tokenizer."""
        with self._lock:
            new = list(dict.fromkeys(t for t in texts if t not in self._tokens))
            self._tokens.update(zip(new, count_tokens(new).tolist(), strict=True))
            return [self._tokens[t] for t in texts]


def hubs_of(first_tens: Sequence[np.ndarray], documents: int) -> dict[int, int]:
    """N_10 of the hubs among ``documents`` searched ones: the number of queries that have it in their first ten.

    ``first_tens`` are the rows of each query's first ten (Radovanović et al. 2010 call N_k the k-occurrence). A hub
    is above the percentile `HUB_PERCENTILE` over all documents, those in no first ten included, and in at least
    `FEWEST_TOP_TENS`.
    """
    if not len(first_tens) or not documents:
        return {}
    rows, counts = np.unique(np.concatenate(list(first_tens)), return_counts=True)
    every = np.concatenate([counts, np.zeros(max(0, documents - len(rows)), int)])
    bound = max(float(np.percentile(every, HUB_PERCENTILE)), FEWEST_TOP_TENS - 1)
    return {int(row): int(n) for row, n in zip(rows, counts, strict=True) if n > bound}


class About:
    """The answers for one run of a task: see `core.analyze.failures.About`."""

    def __init__(self, facts: TaskFacts, model: str, hubs: Mapping[int, int]) -> None:
        self._facts, self.hubs = facts, hubs
        known = [name for name in _parts(model) if name in specs.SPECS]
        self._specs = [specs.SPECS[name] for name in known] if len(known) == len(_parts(model)) else []
        self.facets_of, self.picture_problems, self.twin = facts.facets_of, facts.picture_problems, facts.twin

    def lacks(self, needs: str, ablation: str = "") -> str:
        """Why a kind with these needs cannot be told, "" where it can. ``ablation``: why there are no such runs."""
        if needs == "domain" and not self._facts.has_facet("domain"):
            return "N/A: one domain at a time is searched"
        if needs in FACETS[1:] and not self._facts.has_facet(needs):
            return f"N/A: the documents name no {needs}"
        if needs == "ablation":
            return f"N/A: {ablation}" if ablation else ""
        if needs == "pictures":
            if self._specs and not any("image" in spec.sides for spec in self._specs):
                return "N/A: it reads words only"
            if not any(query.images for place in self._facts.places for query in place.queries):
                return "N/A: no query has a picture"
        if needs == "tokens":
            return self._lacks_tokens()
        return ""

    def _lacks_tokens(self) -> str:
        if not self._specs:
            return "N/A: how long a text it reads is not known here"
        if not any("tokens" in spec.limits for spec in self._specs):
            return "N/A: it reads every word"
        try:
            self._facts.tokens([])
            count_tokens(["a"])
        except ModelUnavailable as error:
            return f"N/A: {error}"
        return ""

    def lost(self, query: Query, relevant: Sequence[int]) -> str:
        """Which tokens a part of the model did not read of the words, or of every relevant document; ""."""
        limits = [spec.limits["tokens"] for spec in self._specs if "tokens" in spec.limits]
        whole = [spec.limits["tokens"] for spec in self._specs if "tokens" in spec.limits and _cuts(spec)]
        parts = []
        if query.text.strip():
            (n,) = self._facts.tokens([query.text.strip()])
            if n > min(limits):
                parts.append(f"{n - min(limits):,} of {n:,} tokens of the words are not read")
        if whole and relevant:
            lost = self._lost_documents(relevant, min(whole))
            if lost:
                parts.append(lost)
        return "; ".join(parts)

    def _lost_documents(self, relevant: Collection[int], limit: int) -> str:
        """What of the relevant documents is cut, where every one of them is."""
        texts = [self._facts.pool.doc(row).full_text for row in sorted(relevant)]
        counts = self._facts.tokens(texts)
        if min(counts) <= limit:
            return ""
        least = min(counts)
        every = "the relevant document" if len(counts) == 1 else f"each of {len(counts):,} relevant documents"
        return f"{every} is cut: at least {least - limit:,} of {least:,} tokens are not read"


def _cuts(spec: specs.ModelSpec) -> bool:
    """Whether what is longer than the limit is lost of a document, not read in passages."""
    return "passage" not in spec.limits


def _parts(model: str) -> list[str]:
    return model.partition(":")[2].split("+") if ":" in model else [model]
