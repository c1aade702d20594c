"""Kinds of failure: each a small function that looks at one query under one run and gives its evidence, or "".

Kinds have a role. A *depth* says how far away the first relevant document was; exactly one holds for a failure. A
*cause* names something that would be mended elsewhere: the data, the judgements, the other modality. A *reading* says
what the modality ablation showed. A failure without a cause is *unexplained*. Kinds are found for queries that do not
fail as well, so that a share among failures can be held against the share among the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from core.data.health import is_template
from core.records import Query

DEPTH, CAUSE, READING = "depth", "cause", "reading"
NEAR_MISS, DEEP_MISS, NOT_RETRIEVED = "near miss", "deep miss", "not retrieved"

NEAR_RANK = 50
"""Up to this rank a first relevant document beyond k is a near miss."""

TOP = 3
"""Hits whose facets and hubs are looked at."""

EPSILON = 0.05
"""Differences of nDCG@10 up to this are no difference in the modality ablation."""

FEWEST_TOP_TENS = 5
HUB_PERCENTILE = 99
"""A hub stands in the first ten of at least 5 queries, and of more than 99 % of the documents do."""

UNJUDGED = -1
"""The grade of a hit without a judgement."""

FACETS = ("domain", "specialty", "modality")


@dataclass(frozen=True, slots=True)
class Ablation:
    """nDCG@10 of one query: full, its picture only, its words only, and full with the pictures of queries of other
    clusters (the mean of five seeded swaps)."""

    full: float
    picture: float
    words: float
    swapped: float

    def __str__(self) -> str:
        names = ("full", "picture", "words", "swapped")
        return "nDCG@10 " + ", ".join(f"{name} {getattr(self, name):.3f}" for name in names)


@dataclass(frozen=True, slots=True)
class Looked:
    """One query under one run. ``hits``: (pool row, grade) of the first documents, `UNJUDGED` without a judgement;
    ``relevant``: pool rows of the relevant documents. ``ablation`` is None for a query of one side.
    ``tied``: (lowest, highest) nDCG@10 over all orders of tied scores, None where no order matters."""

    query: Query
    domain: str
    hits: Sequence[tuple[int, int]]
    relevant: Sequence[int]
    ablation: Ablation | None = None
    tied: tuple[float, float] | None = None


class About(Protocol):
    """What a kind may ask about the data set and the run; answers are made once and kept."""

    hubs: Mapping[int, int]
    """N_10 of the documents (pool rows) that are hubs of this run."""

    def facets_of(self, facet: str, row: int) -> Collection[str]:
        """The values of a facet of a document and of its copies."""
        ...

    def picture_problems(self, query: Query) -> Mapping[str, str]:
        """{"missing", "unreadable" or "blank": a sentence on the first picture of which that holds}."""
        ...

    def lost(self, query: Query, relevant: Sequence[int]) -> str:
        """Which tokens the model did not read of the words, or of every relevant document; ""."""
        ...

    def twin(self, row: int, relevant: Sequence[int]) -> str:
        """Of which relevant document an unjudged one is a near-duplicate, and by what; ""."""
        ...


Find = Callable[[Looked, About], str]


@dataclass(frozen=True, slots=True)
class Kind:
    """``find`` gives the evidence, "" where the kind does not hold; None for depths, which depend on k (`depth_of`).
    ``needs`` names what may be missing in a run: see `core.analyze.about.About.lacks`."""

    name: str
    role: str
    sentence: str
    needs: str = ""
    find: Find | None = field(default=None, repr=False)


def depth_of(first: int, k: int) -> str:
    """The depth of a failure; "" where a relevant document is among the first k. ``first`` 0: none was retrieved."""
    if 0 < first <= k:
        return ""
    return NOT_RETRIEVED if first == 0 else NEAR_MISS if first <= NEAR_RANK else DEEP_MISS


def depth_evidence(first: int, depth: int) -> str:
    """Where the first relevant document was."""
    return f"first relevant document at rank {first:,}" if first else f"no relevant document in the first {depth:,}"


def _wrong(facet: str) -> Find:
    def find(looked: Looked, about: About) -> str:
        own = looked.domain if facet == "domain" else str(looked.query.meta.get(facet) or "")
        right = {own} - {""}
        for row in looked.relevant:
            right |= set(about.facets_of(facet, row))
        top = [about.facets_of(facet, row) for row, _ in looked.hits[:TOP]]
        if not right or not top or any(not values or right & set(values) for values in top):
            return ""
        return f"top {len(top)} hits: {', '.join('/'.join(sorted(v)) for v in top)}; right: {', '.join(sorted(right))}"

    return find


def _reading(holds: Callable[[Ablation], bool]) -> Find:
    def find(looked: Looked, about: About) -> str:
        return str(looked.ablation) if looked.ablation is not None and holds(looked.ablation) else ""

    return find


def _picture(problem: str) -> Find:
    def find(looked: Looked, about: About) -> str:
        return about.picture_problems(looked.query).get(problem, "")

    return find


def _truncated(looked: Looked, about: About) -> str:
    return about.lost(looked.query, looked.relevant)


def _template(looked: Looked, about: About) -> str:
    return f"words: {looked.query.text[:60]!r}" if is_template(looked.query.text) else ""


def _hub(looked: Looked, about: About) -> str:
    for rank, (row, grade) in enumerate(looked.hits[:TOP], 1):
        if row in about.hubs and grade <= 0:
            return f"the hit at rank {rank} is in the first ten of {about.hubs[row]:,} queries"
    return ""


def _tie(looked: Looked, about: About) -> str:
    if looked.tied is None:
        return ""
    low, high = looked.tied
    return f"nDCG@10 lies between {low:.3f} and {high:.3f}, depending on the order of tied scores"


def _judgements(looked: Looked, about: About) -> str:
    found = next(((rank, row) for rank, (row, grade) in enumerate(looked.hits, 1) if grade == UNJUDGED), None)
    if found is None:
        return ""
    twin = about.twin(found[1], looked.relevant)
    return f"the unjudged hit at rank {found[0]} has {twin}" if twin else ""


PAIR = "ablation"
KINDS = (
    Kind(NEAR_MISS, DEPTH, f"The first relevant document is beyond the first k, but within rank {NEAR_RANK}."),
    Kind(DEEP_MISS, DEPTH, f"The first relevant document is beyond rank {NEAR_RANK} (and beyond the first k)."),
    Kind(NOT_RETRIEVED, DEPTH, "No relevant document is within the depth of the run."),
    *(
        Kind(
            f"wrong {facet}",
            CAUSE,
            f"None of the top {TOP} hits has the {facet} of the query or of a relevant document.",
            facet,
            _wrong(facet),
        )
        for facet in FACETS
    ),
    Kind(
        "picture hurts",
        CAUSE,
        f"The words alone would do better by more than {EPSILON} nDCG@10.",
        PAIR,
        _reading(lambda a: a.words > a.full + EPSILON),
    ),
    Kind(
        "words hurt",
        CAUSE,
        f"The picture alone would do better by more than {EPSILON} nDCG@10.",
        PAIR,
        _reading(lambda a: a.picture > a.full + EPSILON),
    ),
    Kind(
        "text truncated",
        CAUSE,
        "The model did not read the end of the words, or of any relevant document.",
        "tokens",
        _truncated,
    ),
    Kind("picture missing", CAUSE, "A picture of the query cannot be found.", "pictures", _picture("missing")),
    Kind("picture unreadable", CAUSE, "A picture of the query cannot be opened.", "pictures", _picture("unreadable")),
    Kind(
        "picture blank",
        CAUSE,
        "A picture of the query shows nothing (standard deviation of its luminance below 4 of 255).",
        "pictures",
        _picture("blank"),
    ),
    Kind("template text", CAUSE, "The words are a template that nobody filled in.", "", _template),
    Kind(
        "hub document",
        CAUSE,
        f"One of the top {TOP} hits is not relevant and comes up for many queries: it is in the first ten of at least "
        f"{FEWEST_TOP_TENS}, and of more than {HUB_PERCENTILE} % of the documents are.",
        "",
        _hub,
    ),
    Kind("tie", CAUSE, "nDCG@10 depends on the order of documents with equal scores.", "", _tie),
    Kind(
        "probably the judgements",
        CAUSE,
        "The first hit without a judgement is a near-duplicate of a relevant document: look at it before blaming the "
        "model.",
        "",
        _judgements,
    ),
    Kind(
        "words decide",
        READING,
        "The words alone do as well as both, and the picture alone does worse.",
        PAIR,
        _reading(lambda a: abs(a.full - a.words) <= EPSILON and a.picture < a.full - EPSILON),
    ),
    Kind(
        "picture ignored",
        READING,
        "With the picture of another case nothing changes.",
        PAIR,
        _reading(lambda a: abs(a.full - a.swapped) <= EPSILON),
    ),
    Kind(
        "both needed",
        READING,
        "Picture and words together do better than either alone.",
        PAIR,
        _reading(lambda a: a.full > max(a.picture, a.words) + EPSILON),
    ),
    Kind(
        "neither suffices",
        READING,
        "Neither the picture, nor the words, nor both find anything.",
        PAIR,
        _reading(lambda a: max(a.full, a.picture, a.words) <= EPSILON),
    ),
)
"""In the order of tables. Every one has a test that plants it, and a twin in which it must not be found."""

BY_NAME = {kind.name: kind for kind in KINDS}


def find_kinds(looked: Looked, about: About, lacking: Collection[str]) -> dict[str, str]:
    """The kinds that hold, depths left out, with their evidence; ``lacking`` names those that cannot be told."""
    found = {}
    for kind in KINDS:
        if kind.find is not None and kind.name not in lacking:
            evidence = kind.find(looked, about)
            if evidence:
                found[kind.name] = evidence
    return found
