"""Commands on data sets: check, prepare, demo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from core.cli.base import AsJson, Bar, Data, Qrels, app, fail, open_data, prepare_app
from core.cli.printing import print_json, print_report


@app.command()
def check(data: Data, as_json: AsJson = False, qrels: Qrels = "test") -> None:
    """Look at every line and picture of a data set; exit 1 if there is a fault."""
    from core.data.health import check as check_dataset

    bar = Bar()
    dataset, _ = open_data(data, qrels, bar)
    report = check_dataset(dataset, bar)
    bar.close()
    if as_json:
        print_json(report.as_dict())
    else:
        print_report(dataset, report)
    raise typer.Exit(1 if report.faults else 0)


@prepare_app.command()
def medpix(
    src: Annotated[Path, typer.Argument(metavar="SRC", help="Folder with Case_topic.json, Descriptions.json, images.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to make.")],
    as_json: AsJson = False,
) -> None:
    """Convert MedPix 2.0 into 4 tasks × 5 domains."""
    from core.data.medpix import PrepareError, prepare

    bar = Bar()
    try:
        counts = prepare(src, out, bar)
    except (PrepareError, OSError) as error:
        fail(error)
    finally:
        bar.close()
    if as_json:
        print_json(counts)
    else:
        typer.echo(f"Wrote {out}. Look at it with: python -m core check {out}")


@app.command()
def demo(out: Annotated[Path, typer.Option(help="Folder to write the library to.")], as_json: AsJson = False) -> None:
    """Draw the embedded demo library again (deterministic)."""
    from core.demo import generate

    counts = generate(out)
    if as_json:
        print_json(counts)
    else:
        typer.echo(f"Wrote {out}: {json.dumps(counts)}")
