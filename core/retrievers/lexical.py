"""BM25 on the words of queries and documents, by the library bm25s."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

from core.data.dataset import silent
from core.embed.pipeline import Progress
from core.models import specs
from core.retrievers.base import NO_TEXT, Ranked, Recipe, ordered
from core.retrievers.place import Place
from core.store.manifest import short_hash

K1, B, METHOD = 1.5, 0.75, "lucene"
STOP_WORDS, STEMMER = "en", "english"
"""bm25s' list of English stop words and Snowball's English stemmer, by PyStemmer."""


class Lexical:
    """BM25 (Robertson and Zaragoza 2009, Lucene's variant) over title and text, stemmed, stop words left out.

    A document that shares no word with the query is not retrieved.
    """

    def __init__(self) -> None:
        self.spec = specs.get("bm25")
        self.stands_for = ""

    def recipe(self, task: str) -> Recipe:
        """The id covers every setting and the libraries, which decide tokens and stems."""
        libraries = {name: version(name) for name in ("bm25s", "PyStemmer")}
        about = {"k1": K1, "b": B, "method": METHOD, "stop_words": STOP_WORDS, "stemmer": STEMMER} | libraries
        return Recipe(encoder_ids=(short_hash({"model": "bm25", **about}),))

    def cannot(self, place: Place) -> str:
        """It needs documents with words."""
        return "" if place.has_text else NO_TEXT

    def rank(self, place: Place, depth: int, progress: Progress = silent) -> Ranked:
        """See `core.retrievers.base.Retriever.rank`."""
        import bm25s
        import Stemmer

        settings = {"stopwords": STOP_WORDS, "stemmer": Stemmer.Stemmer(STEMMER), "show_progress": False}
        progress(f"Counting words of {place.name}", 0, 0)
        texts = [doc.full_text for doc in place.docs()]
        tokens = bm25s.tokenize(texts, **settings)
        if not any(map(len, tokens.ids)):  # stop words and single letters only
            nothing = {name: [] for name in place.query_ids}
            return Ranked(nothing, {"queries_without_known_words": len(place.queries), "floor": 0.0})
        index = bm25s.BM25(k1=K1, b=B, method=METHOD)
        index.index(tokens, show_progress=False)
        asked = bm25s.tokenize([q.text for q in place.queries], return_ids=False, **settings)
        rankings, without = {}, 0
        for at, (name, tokens) in enumerate(zip(place.query_ids, asked, strict=True)):
            if at % 100 == 0:
                progress(f"Ranking {place.name}", at, len(asked))
            known = [token for token in tokens if token in index.vocab_dict]
            without += not known
            scores = np.asarray(index.get_scores(known), np.float32) if known else np.zeros(0, np.float32)
            found = np.flatnonzero(scores > 0)
            rankings[name] = ordered(place, at, found, scores[found], depth)
        return Ranked(rankings, {"queries_without_known_words": without, "floor": 0.0})
