"""The command line: ``python -m core COMMAND``. Results on stdout, progress and warnings on stderr.

With ``--json`` stdout holds one JSON value and nothing else. Exit codes: 0 done, 1 faults or an error in what was
asked, 2 no data set or a wrong command line.
"""

from __future__ import annotations

from core.cli import data, evaluation, failures, search
from core.cli.base import app

__all__ = ["app", "data", "evaluation", "failures", "search"]

if __name__ == "__main__":
    app(prog_name="python -m core")
