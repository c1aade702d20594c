"""Commands on runs: evaluate, import, holes, compare, cost, ship."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.base import AsJson, Bar, Data, Qrels, app, fail, open_data
from core.cli.printing import line, print_json
from core.records import QueryError
from core.settings import STORE

if TYPE_CHECKING:
    from core.evaluate.evaluate import Evaluation


@app.command()
def evaluate(
    data: Data,
    model: Annotated[
        list[str] | None, typer.Option(help="Model or hybrid (rrf:A+B, zsum:A+B); may be repeated.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    domain: Annotated[list[str] | None, typer.Option(help="Only queries of this domain; may be repeated.")] = None,
    split: Annotated[str, typer.Option(help="Only queries with this meta.split.")] = "",
    depth: Annotated[int, typer.Option(help="Documents a ranking holds at most.", min=1)] = 1000,
    index_kind: Annotated[str, typer.Option("--index", help="exact, or hnsw on pools.")] = "exact",
    shipped: Annotated[
        bool, typer.Option("--shipped", help="The shipped head itself, on queries it never saw.")
    ] = False,
    include_seen: Annotated[bool, typer.Option("--include-seen", help="The same on training data too.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Also write the table to this file.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Also write LaTeX tables to this file.")] = None,
    trec: Annotated[Path | None, typer.Option(help="Also write TREC runs and qrels into this folder.")] = None,
    mteb: Annotated[Path | None, typer.Option(help="Also write MTEB results into this folder.")] = None,
    published: Annotated[bool, typer.Option("--published", help="Show published figures beside these.")] = False,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Also make the runs without picture, without words, and with another.")
    ] = False,
    as_json: AsJson = False,
    qrels: Qrels = "test",
) -> None:
    """Runs and measures of models on every collection and pool; what is stored is not made again."""
    from core.cli.printing import print_evaluation, print_published
    from core.data.layouts import DataError
    from core.evaluate.evaluate import OFFLINE, Choice, Evaluation
    from core.evaluate.export import write_mteb, write_tables, write_trec
    from core.evaluate.measures import ALL
    from core.evaluate.published import differences
    from core.models.base import ModelUnavailable

    if index_kind not in ("exact", "hnsw"):
        fail(f"--index is {index_kind!r}; use exact or hnsw.", 2)
    bar = Bar()
    dataset, workspace = open_data(data, qrels, bar)
    names = list(model or OFFLINE)
    choice = Choice(tuple(task or ()), tuple(domain or ()), split, depth, index_kind, shipped, include_seen)
    try:
        evaluation = Evaluation(dataset, workspace, choice, bar)
        scores = [s for t in evaluation.tasks for name in names for s in evaluation.scores(name, t)]
        rows = [
            evaluation.row(found, measure)
            for scope in ("collections", "pool")
            for measure in ALL
            for found in scores
            if found.scope == scope
        ]
        write_tables(rows, csv, latex)
        if trec is not None:
            write_trec(evaluation, scores, trec)
        if mteb is not None:
            write_mteb(evaluation, scores, mteb)
        made = _ablation(evaluation, names) if ablation else []
    except (DataError, QueryError, ModelUnavailable, KeyError, OSError) as error:
        bar.close()
        fail(error.args[0] if isinstance(error, KeyError) else error)
    bar.close()
    for told in made:
        typer.echo(told, err=True)
    if as_json:
        print_json(rows)
        return
    print_evaluation(rows)
    if published:
        print_published(differences(rows))


def _ablation(evaluation: Evaluation, names: list[str]) -> list[str]:
    """Make the runs of the modality ablation; what was made, a line a model and task, or why it cannot be."""
    from core.retrievers.ablated import why_not

    told = []
    for name in names:
        if reason := why_not(evaluation.retriever(name)):
            told.append(f"No ablation: {reason}.")
            continue
        for task in evaluation.tasks:
            found = evaluation.ablation(name, task)
            fresh = sum(made.fresh for made in found)
            told.append(f"{name}, {task}: {fresh} runs of the ablation made, {len(found) - fresh} were there.")
    return told


@app.command("import")
def import_run(
    data: Data,
    model: Annotated[str, typer.Option(help="Short name of the model in tables.")],
    collection: Annotated[
        str, typer.Option(help="Collection that the results are for, for example summary/Head.")
    ] = "",
    task: Annotated[str, typer.Option(help="Instead: task whose collections a TREC run has results for.")] = "",
    run: Annotated[Path | None, typer.Option(help="TREC run (may be .gz) or MTEB predictions (.json).")] = None,
    docs: Annotated[tuple[Path, Path] | None, typer.Option(help="Instead: document vectors (.npy) and ids.")] = None,
    queries: Annotated[tuple[Path, Path] | None, typer.Option(help="And query vectors (.npy) and ids.")] = None,
    model_id: Annotated[str, typer.Option(help="Full name, for example org/name.")] = "",
    revision: Annotated[str, typer.Option(help="Revision of the model.")] = "not stated",
    as_json: AsJson = False,
    qrels: Qrels = "test",
) -> None:
    """Take in the results of a model that does not run here, as stored runs of one collection or of a whole task."""
    from core.data.layouts import DataError
    from core.evaluate.export import store_import
    from core.evaluate.imported import FileRefused
    from core.evaluate.io_mteb import import_predictions, import_vectors
    from core.evaluate.io_trec import import_run as import_trec
    from core.evaluate.io_trec import read_run
    from core.evaluate.make import DEPTH
    from core.evaluate.uploaded import checked_name, store_upload, upload_of
    from core.retrievers.place import Place

    bar = Bar()
    dataset, workspace = open_data(data, qrels, bar)
    if bool(collection) == bool(task):
        fail("Give --collection NAME, or --task NAME for a run of all its collections.")
    if collection and collection not in dataset.collections:
        fail(f"There is no collection {collection!r}; there are: {', '.join(dataset.collections)}.")
    if (run is None) == (docs is None or queries is None):
        fail("Give --run FILE, or --docs VECTORS IDS and --queries VECTORS IDS.")
    if task and (run is None or run.suffix == ".json"):
        fail("Only a TREC run can be of a whole task; name the collection of vectors and predictions by --collection.")
    try:
        model = checked_name(model)
        if task:
            upload = upload_of(read_run(run), dataset, task, model, revision)
            imported, notes = upload.imported, upload.notes
            made = store_upload(upload, dataset, workspace, model_id)
        else:
            member, same = dataset.collections[collection], dataset.ignore_identical_ids
            if run is not None:
                read = import_predictions if run.suffix == ".json" else import_trec
                one = read(run, member, same)
            else:
                one = import_vectors(docs, queries, member, DEPTH, same)
            imported, notes = {collection: one}, one.notes()
            place = Place(dataset, member.task, workspace, collection)
            made = [store_import(one, place, model, model_id or model, revision, workspace.root)]
    except (FileRefused, DataError, ValueError, OSError) as error:
        fail(error)
    for note in notes:
        typer.echo(note, err=True)
    stored = [{"place": one.info.place, "folder": str(one.folder)} for one in made]
    if as_json:
        print_json({"model": model, "notes": list(notes)} | ({"task": task, "runs": stored} if task else stored[0]))
        return
    for one in made:
        place = one.info.place
        line(f"Stored {len(imported[place].rankings)} rankings of {model} for {place} in {one.folder}.")


@app.command()
def holes(
    data: Data,
    model: Annotated[str, typer.Option(help="Model whose hits are looked at.")] = "medlite",
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    as_json: AsJson = False,
    qrels: Qrels = "test",
) -> None:
    """Unjudged documents in the first ten hits, and possible false negatives: those that look like a relevant one."""
    from core.data.layouts import DataError
    from core.evaluate.evaluate import Choice, Evaluation
    from core.evaluate.holes import holes as holes_of
    from core.evaluate.run import open_run
    from core.media.phash import Hashes
    from core.models.base import ModelUnavailable

    bar = Bar()
    dataset, workspace = open_data(data, qrels, bar)
    hashes, found = Hashes(workspace.path("thumbnails")), []
    try:
        evaluation = Evaluation(dataset, workspace, Choice(tuple(task or ()), pools=False), bar)
        for scores in (s for name in evaluation.tasks for s in evaluation.scores(model, name)):
            for made in scores.runs:
                collection = dataset.collections[made.info.place]
                rankings = open_run(made.folder).run.rankings
                found.append(holes_of(rankings, collection, hashes, ignore_identical_ids=dataset.ignore_identical_ids))
    except (DataError, QueryError, ModelUnavailable, KeyError, OSError) as error:
        bar.close()
        fail(error.args[0] if isinstance(error, KeyError) else error)
    bar.close()
    if as_json:
        print_json([dataclasses.asdict(one) for one in found])
        return
    for one in found:
        unjudged = one.reason or f"{sum(map(len, one.unjudged.values()))} unjudged among the first ten"
        line(f"{one.collection}: {unjudged}; {len(one.possible)} possible false negatives")
        for p in one.possible:
            line(f"  query {p.query}: rank {p.rank}, {p.document} has {p.why} as the relevant {p.relevant}")


@app.command()
def compare(
    data: Data,
    run: Annotated[list[str] | None, typer.Option(help="Model to show; may be repeated. All when left out.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    measure: Annotated[str, typer.Option(help="Measure that is compared.")] = "nDCG@10",
    by: Annotated[str, typer.Option(help="Facet to group by: domain, specialty, modality, collection, …")] = "domain",
    as_json: AsJson = False,
    qrels: Qrels = "test",
) -> None:
    """Which stored runs are better, and which differences are not established; every listed run takes part."""
    from core.analyze.league import Leagues
    from core.cli.printing import print_comparison
    from core.data.layouts import DataError
    from core.evaluate.measures import ALL

    if measure not in ALL:
        fail(f"Runs are stored without {measure!r}; they have {', '.join(ALL)}.")
    bar = Bar()
    dataset, workspace = open_data(data, qrels, bar)
    results = []
    leagues = Leagues(dataset, workspace)
    try:
        for name in task or dataset.tasks:
            scored, left_out = leagues.listed(name, measure)
            for reason in left_out:
                typer.echo(reason, err=True)
            unknown = sorted(set(run or ()) - {s.name for s in scored})
            if unknown:
                known = ", ".join(sorted(s.name for s in scored)) or "none"
                fail(f"{name} has no listed run of {unknown[0]!r}; there are: {known}. evaluate makes runs.")
            if scored:
                results.append(leagues.of(name, measure, by).comparison.as_dict(run))
    except (DataError, ValueError, OSError) as error:
        fail(error)
    if not results:
        fail("There is no stored run of this data set. python -m core evaluate makes them.")
    if as_json:
        print_json(results)
    else:
        print_comparison(results)


@app.command()
def cost(
    data: Data,
    model: Annotated[
        list[str] | None, typer.Option(help="Model or hybrid; may be repeated. All when left out.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    as_json: AsJson = False,
    qrels: Qrels = "test",
) -> None:
    """Measure what models cost on this machine: time to encode, bytes of the index, size of the model."""
    from core.cli.printing import print_costs
    from core.data.layouts import DataError
    from core.evaluate import cost as costs
    from core.evaluate.evaluate import OFFLINE
    from core.models.base import ModelUnavailable
    from core.retrievers.fused import hybrid_of

    bar = Bar()
    dataset, workspace = open_data(data, qrels, bar)
    names = list(dict.fromkeys(model or OFFLINE))
    found = []
    try:
        parts = [part for name in names for part in (hybrid_of(name) or ("", (name,)))[1]]
        for chosen in task or dataset.tasks:
            for part in dict.fromkeys(parts):
                costs.store(costs.measure(dataset, workspace, chosen, part, bar), workspace)
            found += [costs.cost_of(dataset, workspace, chosen, name) for name in names]
    except (DataError, ModelUnavailable, KeyError, OSError) as error:
        bar.close()
        fail(error.args[0] if isinstance(error, KeyError) else error)
    bar.close()
    if as_json:
        print_json([dataclasses.asdict(one) for one in found])
    else:
        print_costs(found)


@app.command()
def ship(
    out: Annotated[Path, typer.Option(help="Folder of the read-only store to fill.")] = STORE,
    model: Annotated[list[str] | None, typer.Option(help="Encoder; may be repeated. All when left out.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the demo's vectors, match strengths and runs again, for the store that the repository ships."""
    from core.data.layouts import DataError
    from core.evaluate.ship import ship as fill
    from core.models.base import ModelUnavailable

    bar = Bar()
    try:
        rows = fill(out, model, bar)
    except (DataError, ModelUnavailable, KeyError, OSError) as error:
        bar.close()
        fail(error.args[0] if isinstance(error, KeyError) else error)
    bar.close()
    if as_json:
        print_json(rows)
    else:
        for row in rows:
            line(f"{row['model']:20} {row['model_id']}, {row['revision']}: {row['task']}, {row['runs']} runs")
