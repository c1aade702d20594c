"""Between what bounds a measure lies over all orders of documents with equal scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from core.evaluate.measures import per_query

MEASURE, CUT = "nDCG@10", 10


def tied_ranges(
    rankings: Iterable[tuple[str, np.ndarray, np.ndarray]], ids: list[str], qrels: Mapping[str, Mapping[str, int]]
) -> dict[str, tuple[float, float]]:
    """(lowest, highest) nDCG@10 of each query for which the order of tied scores matters.

    ``rankings``: query, answers int [hits] (positions in ``ids``) and scores float32 [hits] by rank; ``qrels`` are
    those of the whole place.
    """
    lowest, highest = {}, {}
    for name, answers, scores in rankings:
        grades = qrels.get(name, {})
        if len(answers) < 2 or not any(grade > 0 for grade in grades.values()):
            continue
        last = scores[min(CUT, len(scores)) - 1]
        end = len(scores) - int(np.searchsorted(scores[::-1], last))  # all that could stand among the first ten
        if len(np.unique(scores[:end])) == end:
            continue
        docs = [ids[answer] for answer in answers[:end]]
        gains = np.array([max(0, grades.get(doc, 0)) for doc in docs])
        up, down = np.lexsort((gains, -scores[:end])), np.lexsort((-gains, -scores[:end]))
        if (gains[up][:CUT] == gains[down][:CUT]).all():
            continue
        for found, order in ((lowest, up), (highest, down)):
            found[name] = [(docs[at], float(end - place)) for place, at in enumerate(order)]
    low, high = (per_query(found, {name: qrels[name] for name in found}, [MEASURE]) for found in (lowest, highest))
    return {name: (low[MEASURE][name], high[MEASURE][name]) for name in lowest}
