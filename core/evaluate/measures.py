"""Per-query measures of a run, computed by ``ir_measures`` over pytrec_eval (NIST's trec_eval code).

Gains are linear, nDCG's ideal uses all judged documents, `R@k` divides by all relevant documents, and a document is
relevant from grade 1 on. Equal scores, compared as 32-bit floats, are ordered by id, descending.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Ranking = Sequence[tuple[str, float]]
"""(document id, score) pairs; what counts are the scores and ids, not the order they come in."""

DEFAULT = ("nDCG@10", "Success@10")


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one measure is called elsewhere; ``{k}`` stands for the cut.

    ``cut_first``: the run is cut to k before the library's uncut measure is called.
    """

    library: str
    mteb: str
    cut_first: bool = False


SPELLINGS: dict[str, Spelling] = {
    "nDCG@k": Spelling("nDCG@{k}", "ndcg_at_{k}"),
    "Success@k": Spelling("Success@{k}", "hit_rate_at_{k}"),
    "R@k": Spelling("R@{k}", "recall_at_{k}"),
    # The library's own RR@k orders ties by id ascending, against trec_eval.
    "RR@k": Spelling("RR", "mrr_at_{k}", cut_first=True),
    # MTEB gives no uncut AP; its deepest cut is the same for runs of up to 1000 documents.
    "AP": Spelling("AP", "map_at_1000"),
}
"""The measures of this project by their names in it."""


def spelling(name: str) -> tuple[Spelling, int | None]:
    """The spelling of a measure such as ``nDCG@10``, filled in, and its cut; ValueError for an unknown name."""
    matched = re.fullmatch(r"([A-Za-z]+)(?:@([1-9][0-9]*))?", name)
    kind, cut = matched.groups() if matched else ("", None)
    found = SPELLINGS.get(f"{kind}@k" if cut else kind)
    if found is None:
        raise ValueError(f"no measure {name!r}; there are {', '.join(SPELLINGS)}, with a whole number from 1 for k")
    filled = Spelling(found.library.format(k=cut), found.mteb.format(k=cut), found.cut_first)
    return filled, int(cut) if cut else None


def trec_order(ranking: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """Pairs with scores as 32-bit floats, by score descending, then id descending.

    Raises ValueError for a document that stands twice and for a score that is no finite number.
    """
    pairs = [(doc, float(np.float32(score))) for doc, score in ranking]
    bad = next((doc for doc, score in pairs if not math.isfinite(score)), None)
    if bad is not None:
        raise ValueError(f"the score of document {bad!r} is not a finite 32-bit number")
    if len({doc for doc, _ in pairs}) != len(pairs):
        raise ValueError("a document stands twice in one ranking")
    return sorted(pairs, key=lambda pair: (pair[1], pair[0]), reverse=True)


def without_relevant(queries: Iterable[str], qrels: Mapping[str, Mapping[str, int]]) -> list[str]:
    """The ``queries`` that no measure can count: they have no relevant document. Sorted."""
    return sorted(q for q in queries if not any(grade > 0 for grade in qrels.get(q, {}).values()))


def per_query(
    rankings: Mapping[str, Ranking], qrels: Mapping[str, Mapping[str, int]], names: Sequence[str] = DEFAULT
) -> dict[str, dict[str, float]]:
    """Each measure of every query of ``qrels`` that has a relevant document: ``{name: {query: 0…1}}``, by query.

    A query missing from the rankings scores 0 and counts. Queries without a relevant document are left out (count
    them with `without_relevant`), and so are rankings of queries that ``qrels`` lacks. Ids must be spelled alike in
    both. ValueError for an unknown measure or a ranking that `trec_order` refuses.
    """
    import ir_measures

    spellings = {name: spelling(name) for name in names}
    dropped = set(without_relevant(qrels, qrels))
    judged = {q: dict(qrels[q]) for q in sorted(qrels) if q not in dropped}
    ordered = {q: trec_order(rankings[q]) for q in judged if rankings.get(q)}
    result = {name: dict.fromkeys(judged, 0.0) for name in names}
    cuts = sorted({cut for form, cut in spellings.values() if form.cut_first})
    for depth in (None, *cuts) if ordered else ():
        wanted = {
            ir_measures.parse_measure(form.library): name
            for name, (form, cut) in spellings.items()
            if (cut if form.cut_first else None) == depth
        }
        if wanted:
            run = {q: dict(pairs[:depth]) for q, pairs in ordered.items()}
            for found in ir_measures.pytrec_eval.iter_calc(list(wanted), judged, run):
                result[wanted[found.measure]][found.query_id] = float(found.value)
    return result
