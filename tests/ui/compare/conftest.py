"""The comparison's callbacks over the runs that are shipped for the demo, in public mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.context import AppContext
from core.settings import Settings
from ui.compare.state import Brought, Choice
from ui.compare.tab import Compare

DEMO = "Demo library"
EVIL = "\"><script>alert(1)</script>${x}{{y}}'`\\frac"
NAMES = ("bm25", "minilm", "minilm-maxp", "medlite", "late", "rrf:bm25+medlite", "zsum:bm25+minilm")
CHOICE = Choice(DEMO, "case_study", "nDCG@10", "domain", NAMES, "medlite", "bm25")


@pytest.fixture(scope="session")
def demo(tmp_path_factory) -> AppContext:
    return AppContext(Settings((), str(tmp_path_factory.mktemp("demo")), True))


@pytest.fixture
def tab(demo) -> Compare:
    return Compare(demo)


@pytest.fixture
def choice() -> Callable[..., Choice]:
    return lambda **changes: replace(CHOICE, **changes)


@pytest.fixture
def evil() -> str:
    return EVIL


@pytest.fixture
def nobody() -> Brought:
    return Brought()


@pytest.fixture
def run_of(demo) -> Callable[[str], bytes]:
    """A TREC run of a task that ranks the relevant documents of every query first, ids as pools spell them."""

    def make(task: str) -> bytes:
        lines = []
        for collection in demo.dataset(DEMO).pool(task).collections:
            key = collection.key.replace("/", "%2F").replace(" ", "%20")
            for query in collection.all_queries():
                judged = collection.qrels.get(query.id, {})
                found = sorted((doc for doc, grade in judged.items() if grade > 0), key=lambda doc: -judged[doc])
                lines += [f"{key}/{query.id} Q0 {doc} {i} {-i} best" for i, doc in enumerate(found, 1)]
        return "\n".join(lines).encode()

    return make
