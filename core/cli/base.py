"""What all commands share: the app, its common options, opening a data set and a model, progress and errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from tqdm import tqdm

from core.settings import Settings
from core.store.workspace import WorkspaceError, open_workspace

HELP = """The command line: ``python -m core COMMAND``. Results on stdout, progress and warnings on stderr.

With ``--json`` stdout holds one JSON value and nothing else. Exit codes: 0 done, 1 faults or an error in what was
asked, 2 no data set or a wrong command line.
"""

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=HELP)
prepare_app = typer.Typer(no_args_is_help=True, help="Convert a source into the benchmark's layout.")
app.add_typer(prepare_app, name="prepare")

Data = Annotated[Path, typer.Argument(metavar="DATA", help="Folder of a data set in M3Retrieve or BEIR layout.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
Qrels = Annotated[str, typer.Option(help="Judgement file: qrels/NAME.tsv.", metavar="NAME")]
Task = Annotated[str, typer.Option(help="Task of the pool to search.")]


class Bar:
    """A progress callback that draws one tqdm bar per step on stderr."""

    def __init__(self) -> None:
        self._bar: tqdm | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._bar is None or self._bar.desc != f"{what}: ":
            self.close()
            self._bar = tqdm(total=total or None, desc=what, file=sys.stderr, mininterval=0.5, delay=0.5, leave=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def fail(message: object, code: int = 1) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(code)


def open_data(data: Path, qrels: str, bar: Bar):
    from core.data.dataset import open_dataset
    from core.data.layouts import DataError

    try:
        workspace = open_workspace(Settings.from_environment().workspace)
        if workspace.note:
            typer.echo(workspace.note, err=True)
        return open_dataset(data, workspace, qrels, bar), workspace
    except DataError as error:
        fail(error, 2)
    except (WorkspaceError, ValueError, OSError) as error:
        fail(error)


def open_pipeline(model: str, workspace: Any) -> Any:
    from core.embed.pipeline import Pipeline
    from core.models import specs
    from core.models.base import ModelUnavailable

    try:
        return Pipeline(specs.load(model), workspace)
    except (ModelUnavailable, ValueError, KeyError) as error:
        fail(error.args[0] if error.args else error)
