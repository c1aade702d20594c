"""Text encoders by plain cosine: one vector a document, the best of its passages, or one vector a token.

Tokens are all-MiniLM-L6-v2's: the model reads 256, what is longer is cut, and passages are as long as it reads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.data.dataset import silent
from core.embed.pipeline import Pipeline, Progress, text_key
from core.models import specs
from core.models.frozen import FrozenTexts, check
from core.models.medlite import MedliteEncoder
from core.retrievers.base import NO_TEXT, Ranked, Recipe, ordered
from core.retrievers.order import Rankings
from core.retrievers.place import Place
from core.store.manifest import short_hash
from core.store.workspace import Workspace

PASSAGE, STRIDE = 200, 150
"""Tokens of a passage, and by how many its successor begins later: 50 tokens overlap, so that no sentence is lost
between two."""

TEXTS_AT_ONCE = 64
"""Texts whose token vectors are made together."""

SCORES_AT_ONCE = 8_000_000


class TextRetriever:
    """What the three have in common: the tower, the words of a place, and queries without any."""

    name = ""

    def __init__(self, workspace: Workspace) -> None:
        self.spec = specs.get(self.name)
        self.tower: FrozenTexts = MedliteEncoder().towers["text"]
        self.pipeline = Pipeline(self.tower, workspace)
        self.stands_for = ""

    def cannot(self, place: Place) -> str:
        """It needs documents with words."""
        return "" if place.has_text else NO_TEXT

    def _vectors(self, texts: Sequence[str], progress: Progress) -> np.ndarray:
        """float32 [len(texts), 384], unit length, made where they are missing; no text is blank."""
        check(self.tower.requires())
        self.pipeline.encode_texts(texts, progress)
        return self.pipeline.stores["text"].get([text_key(text) for text in texts])

    def _asked(self, place: Place) -> list[int]:
        """The numbers of the queries that have words."""
        return [at for at, query in enumerate(place.queries) if query.text.strip()]

    def _facts(self, place: Place, texts: Sequence[str]) -> dict[str, int]:
        """Counts for the run's manifest; call it when the texts are encoded."""
        cut = self.pipeline.stores["text"].truncated([text_key(text) for text in texts])
        without = len(place.queries) - len(self._asked(place))
        return {"truncated_texts": int(cut.sum()), "queries_without_words": without}


class Minilm(TextRetriever):
    """Cosine of one vector a text."""

    name = "minilm"

    def recipe(self, task: str) -> Recipe:
        """The tower alone decides."""
        return Recipe(encoder_ids=(self.tower.encoder_id,))

    def rank(self, place: Place, depth: int, progress: Progress = silent) -> Ranked:
        """See `core.retrievers.base.Retriever.rank`."""
        texts = [doc.full_text for doc in place.docs()]
        having, asked = [i for i, text in enumerate(texts) if text], self._asked(place)
        documents = self._vectors([texts[i] for i in having], progress)
        queries = self._vectors([place.queries[at].text.strip() for at in asked], progress)
        rankings: Rankings = {name: [] for name in place.query_ids}
        for at, query in zip(asked, queries, strict=True):
            rankings[place.query_ids[at]] = ordered(place, at, having, documents @ query, depth)
        return Ranked(rankings, self._facts(place, [texts[i] for i in having]))


class MinilmMaxp(TextRetriever):
    """Cosine of the best passage of a document (MaxP, Dai and Callan 2019); a query is one vector."""

    name = "minilm-maxp"

    def recipe(self, task: str) -> Recipe:
        """The tower and how texts are cut decide."""
        about = {"tower": self.tower.encoder_id, "passage": PASSAGE, "stride": STRIDE, "pooling": "max"}
        return Recipe(encoder_ids=(short_hash(about),))

    def passages(self, text: str) -> list[str]:
        """A text in overlapping stretches of `PASSAGE` tokens, the text itself where it is no longer than one."""
        spans = [span for span in self.tower.tower().offsets(text) if span[0] < span[1]]
        if len(spans) <= PASSAGE:
            return [text]
        starts = range(0, len(spans) - PASSAGE + STRIDE, STRIDE)
        cut = (spans[start : start + PASSAGE] for start in starts)
        return [text[stretch[0][0] : stretch[-1][1]] for stretch in cut]

    def rank(self, place: Place, depth: int, progress: Progress = silent) -> Ranked:
        """See `core.retrievers.base.Retriever.rank`."""
        check(self.tower.requires())
        texts = [doc.full_text for doc in place.docs()]
        having, asked = [i for i, text in enumerate(texts) if text], self._asked(place)
        progress(f"Cutting {place.name} into passages", 0, 0)
        cut = [self.passages(texts[i]) for i in having]
        passages = [passage for parts in cut for passage in parts]
        starts = np.cumsum([0, *(len(parts) for parts in cut)])[:-1]
        documents = self._vectors(passages, progress)
        queries = self._vectors([place.queries[at].text.strip() for at in asked], progress)
        rankings: Rankings = {name: [] for name in place.query_ids}
        for at, query in zip(asked, queries, strict=True):
            scores = np.maximum.reduceat(documents @ query, starts)
            rankings[place.query_ids[at]] = ordered(place, at, having, scores, depth)
        return Ranked(rankings, self._facts(place, passages) | {"passages": len(passages)})


class Late(TextRetriever):
    """Late interaction: each token of the query finds its nearest token of the document (MaxSim, ColBERT; Khattab and
    Zaharia 2020), averaged over the query's tokens. MiniLM was not trained for it, so this is no ColBERT."""

    name = "late"

    def recipe(self, task: str) -> Recipe:
        """The tower, read token by token."""
        about = {"tower": self.tower.encoder_id, "pooling": "tokens", "score": "MaxSim"}
        return Recipe(encoder_ids=(short_hash(about),))

    def rank(self, place: Place, depth: int, progress: Progress = silent) -> Ranked:
        """See `core.retrievers.base.Retriever.rank`. Token vectors live only while one collection is ranked."""
        check(self.tower.requires())
        rankings: Rankings = {name: [] for name in place.query_ids}
        texts = [doc.full_text for doc in place.docs()]
        having, asked = [i for i, text in enumerate(texts) if text], self._asked(place)
        distinct = sorted({place.queries[at].text.strip() for at in asked}, key=lambda text: (len(text), text))
        queries, _ = self._tokens(distinct, f"Reading the queries of {place.name}", progress)
        number = {text: at for at, text in enumerate(distinct)}
        scores = np.empty((len(distinct), len(having)), np.float32)
        truncated = 0
        for first in range(0, len(having), TEXTS_AT_ONCE):
            part = having[first : first + TEXTS_AT_ONCE]
            progress(f"Reading {place.name} token by token", first, len(having))
            documents, cut = self._tokens([texts[i] for i in part], "", silent)
            truncated += cut
            scores[:, first : first + len(part)] = max_sim(queries, documents)
        for at in asked:
            row = scores[number[place.queries[at].text.strip()]]
            rankings[place.query_ids[at]] = ordered(place, at, having, row, depth)
        facts = {"truncated_texts": truncated, "queries_without_words": len(place.queries) - len(asked)}
        return Ranked(rankings, facts)

    def _tokens(self, texts: Sequence[str], what: str, progress: Progress) -> tuple[list[np.ndarray], int]:
        """Unit token vectors float32 [t, 384] of each text, in blocks that only the texts decide; and how many texts
        were cut."""
        found, cut = [], 0
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            progress(what, start, len(texts))
            vectors, tokens = self.tower.tower().tokens(texts[start : start + TEXTS_AT_ONCE])
            found += vectors
            cut += int((tokens > self.tower.tower().max_tokens).sum())
        return found, cut


def max_sim(queries: Sequence[np.ndarray], documents: Sequence[np.ndarray]) -> np.ndarray:
    """float32 [queries, documents]: the mean over a query's tokens of its largest product with a document's tokens."""
    result = np.empty((len(queries), len(documents)), np.float32)
    if not documents:
        return result
    tokens = np.concatenate(documents)
    starts = np.cumsum([0, *(len(d) for d in documents)])[:-1]
    first = 0
    while first < len(queries):
        last, rows = first, 0
        while last < len(queries) and (last == first or (rows + len(queries[last])) * len(tokens) <= SCORES_AT_ONCE):
            rows += len(queries[last])
            last += 1
        block = queries[first:last]
        best = np.maximum.reduceat(np.concatenate(block) @ tokens.T, starts, axis=1)
        bounds = np.cumsum([0, *(len(q) for q in block)])[:-1]
        lengths = np.array([len(q) for q in block], np.float32)
        result[first:last] = np.add.reduceat(best, bounds, axis=0) / lengths[:, None]
        first = last
    return result
