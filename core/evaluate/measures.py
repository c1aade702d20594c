"""Per-query measures of a run, computed by ``ir_measures`` over pytrec_eval (NIST's trec_eval code).

Gains are linear, nDCG's ideal uses all judged documents, `R@k` divides by all relevant documents, and a document is
relevant from grade 1 on. Equal scores, compared as 32-bit floats, are ordered by id, descending.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from core.retrievers.order import trec_order

Ranking = Sequence[tuple[str, float]]
"""(document id, score) pairs; what counts are the scores and ids, not the order they come in."""

DEFAULT = ("nDCG@10", "Success@10")

ALL = (
    *("nDCG@10", "Success@10", "R@1", "R@5", "R@10", "R@100", "RR@10", "AP", "P@5"),
    *("Judged@10", "bpref", "condensed nDCG@10"),
)
"""The measures of a run, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one measure is called elsewhere; ``{k}`` stands for the cut, and ``mteb`` is "" where MTEB lacks it.

    ``cut_first``: the run is cut to k before the library's uncut measure is called. ``needs_zeros``: it says nothing
    where no document is judged not relevant.
    """

    library: str
    mteb: str
    cut_first: bool = False
    needs_zeros: bool = False


SPELLINGS: dict[str, Spelling] = {
    "nDCG@k": Spelling("nDCG@{k}", "ndcg_at_{k}"),
    "Success@k": Spelling("Success@{k}", "hit_rate_at_{k}"),
    "R@k": Spelling("R@{k}", "recall_at_{k}"),
    # The library's own RR@k orders ties by id ascending, against trec_eval.
    "RR@k": Spelling("RR", "mrr_at_{k}", cut_first=True),
    # MTEB gives no uncut AP; its deepest cut is the same for runs of up to 1000 documents.
    "AP": Spelling("AP", "map_at_1000"),
    "P@k": Spelling("P@{k}", "precision_at_{k}"),
    # The share of the first k, or of all where there are fewer; the library's own Judged@k cuts ties the other way.
    "Judged@k": Spelling("Judged", "", cut_first=True, needs_zeros=True),
    "bpref": Spelling("Bpref", "", needs_zeros=True),
    # Documents without a judgement are taken out of the ranking first (Sakai 2007).
    "condensed nDCG@k": Spelling("nDCG(judged_only=True)@{k}", "", needs_zeros=True),
}
"""The measures of this project by their names in it."""


def spelling(name: str) -> tuple[Spelling, int | None]:
    """The spelling of a measure such as ``nDCG@10``, filled in, and its cut; ValueError for an unknown name."""
    matched = re.fullmatch(r"((?:condensed )?[A-Za-z]+)(?:@([1-9][0-9]*))?", name)
    kind, cut = matched.groups() if matched else ("", None)
    found = SPELLINGS.get(f"{kind}@k" if cut else kind)
    if found is None:
        raise ValueError(f"no measure {name!r}; there are {', '.join(SPELLINGS)}, with a whole number from 1 for k")
    filled = replace(found, library=found.library.format(k=cut), mteb=found.mteb.format(k=cut))
    return filled, int(cut) if cut else None


def positives_only(qrels: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether the judgements of a collection name no document that is not relevant (grade 0)."""
    return not any(grade == 0 for grades in qrels.values() for grade in grades.values())


def not_available(name: str, positives_only: bool) -> str:
    """Why a measure has no value on a collection, "" where it has one; ValueError for an unknown measure."""
    if not (spelling(name)[0].needs_zeros and positives_only):
        return ""
    return f"{name} is N/A: it needs documents judged not relevant, and this collection lists only relevant ones"


def without_relevant(queries: Iterable[str], qrels: Mapping[str, Mapping[str, int]]) -> list[str]:
    """The ``queries`` that no measure can count: they have no relevant document. Sorted."""
    return sorted(q for q in queries if not any(grade > 0 for grade in qrels.get(q, {}).values()))


def per_query(
    rankings: Mapping[str, Ranking],
    qrels: Mapping[str, Mapping[str, int]],
    names: Sequence[str] = DEFAULT,
    only: Collection[str] | None = None,
) -> dict[str, dict[str, float]]:
    """Each measure of every query of ``qrels`` that has a relevant document: ``{name: {query: 0…1}}``, by query.

    ``qrels`` are those of a whole collection: where it is positives-only, what is then `not_available` is NaN for
    every query. With ``only``, these queries are measured, and nothing else changes. A query missing from the
    rankings scores 0 and counts. Queries without a relevant document are left out (count them with
    `without_relevant`), and so are rankings of queries that ``qrels`` lacks. Ids must be spelled alike in both.
    ValueError for an unknown measure or a ranking that `trec_order` refuses.
    """
    import ir_measures

    spellings = {name: spelling(name) for name in names}
    chosen = set(qrels) if only is None else set(only).intersection(qrels)
    judged = {q: dict(qrels[q]) for q in sorted(chosen.difference(without_relevant(chosen, qrels)))}
    ordered = {q: trec_order(rankings[q]) for q in judged if rankings.get(q)}
    absent = {name for name in names if not_available(name, positives_only(qrels))}
    result = {name: dict.fromkeys(judged, math.nan if name in absent else 0.0) for name in names}
    library = ir_measures.providers.FallbackProvider([ir_measures.pytrec_eval, ir_measures.judged])
    cuts = sorted({cut for form, cut in spellings.values() if form.cut_first})
    for depth in (None, *cuts) if ordered else ():
        wanted = {
            ir_measures.parse_measure(form.library): name
            for name, (form, cut) in spellings.items()
            if (cut if form.cut_first else None) == depth and name not in absent
        }
        if wanted:
            run = {q: dict(pairs[:depth]) for q, pairs in ordered.items()}
            for found in library.iter_calc(list(wanted), judged, run):
                result[wanted[found.measure]][found.query_id] = float(found.value)
    return result
