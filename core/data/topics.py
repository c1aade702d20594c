"""Which queries belong together: the unit of statistics, of folds and of splits."""

from __future__ import annotations

import unicodedata

from core.records import Query


def cluster_of(query: Query) -> str:
    """The cluster of a query: its ``meta.cluster``, else its case, else its words, else the query alone.

    Words are compared after NFKC, case folding and collapsing white space. The kind is part of the name, so a case
    is never taken for a cluster of the same name.
    """
    for kind in ("cluster", "case"):
        if query.meta.get(kind) not in (None, ""):
            return f"{kind}:{query.meta[kind]}"
    # Folding can leave text that NFKC would change again, and the other way round.
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", query.text).casefold())
    words = " ".join(text.split())
    return f"text:{words}" if words else f"query:{query.collection}/{query.id}"
