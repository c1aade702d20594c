"""The command line: ``python -m core COMMAND``. Results on stdout, progress and warnings on stderr.

With ``--json`` stdout holds one JSON value and nothing else. Exit codes: 0 done, 1 faults or an error in what was
asked, 2 no data set or a wrong command line.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from tqdm import tqdm

from core.printing import line, print_json, print_report, print_result, print_strength, strength_row
from core.records import QueryError
from core.settings import STORE, Settings
from core.store.workspace import WorkspaceError, open_workspace

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
prepare_app = typer.Typer(no_args_is_help=True, help="Convert a source into the benchmark's layout.")
app.add_typer(prepare_app, name="prepare")

Data = Annotated[Path, typer.Argument(metavar="DATA", help="Folder of a data set in M3Retrieve or BEIR layout.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
Qrels = Annotated[str, typer.Option(help="Judgement file: qrels/NAME.tsv.", metavar="NAME")]
Task = Annotated[str, typer.Option(help="Task of the pool to search.")]


class _Bar:
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


def _fail(message: object, code: int = 1) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(code)


def _open(data: Path, qrels: str, bar: _Bar):
    from core.data.dataset import open_dataset
    from core.data.layouts import DataError

    try:
        workspace = open_workspace(Settings.from_environment().workspace)
        if workspace.note:
            typer.echo(workspace.note, err=True)
        return open_dataset(data, workspace, qrels, bar), workspace
    except DataError as error:
        _fail(error, 2)
    except (WorkspaceError, ValueError, OSError) as error:
        _fail(error)


@app.command()
def check(data: Data, as_json: AsJson = False, qrels: Qrels = "test") -> None:
    """Look at every line and picture of a data set; exit 1 if there is a fault."""
    from core.data.health import check as check_dataset

    bar = _Bar()
    dataset, _ = _open(data, qrels, bar)
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

    bar = _Bar()
    try:
        counts = prepare(src, out, bar)
    except (PrepareError, OSError) as error:
        _fail(error)
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


@app.command()
def index(
    data: Data,
    task: Annotated[str, typer.Option(help="One task only.")] = "",
    model: Annotated[str, typer.Option(help="Encoder.")] = "medlite",
    as_json: AsJson = False,
    qrels: Qrels = "test",
) -> None:
    """Build the vectors, indexes and match strengths that are missing; print each pool's size and HNSW recall."""
    from core.data.layouts import DataError
    from core.models.base import ModelUnavailable
    from core.retrievers.fair import Fair
    from core.search.calibrate import calibrate
    from core.search.searcher import Searcher

    bar = _Bar()
    dataset, workspace = _open(data, qrels, bar)
    pipeline = _pipeline(model, workspace)
    rows, fair = [], None
    try:
        for name in [task] if task else dataset.tasks:
            before = pipeline.done.encoded
            searcher = Searcher(dataset, name, pipeline, bar)
            if searcher.calibration is None:
                fair = fair or Fair(dataset, pipeline, bar)
                parts = [(answerer.searcher, answerer.queries) for answerer in fair.answerers(name, bar)]
                searcher.keep_calibration(calibrate(searcher, parts, fair.source, bar))
            bar.close()
            facts, spec = searcher.index.facts, pipeline.encoder.spec
            row = {"task": name, "kind": "hnsw" if searcher.index.hnsw else "exact"}
            row |= {"model": model, "model_id": spec.model_id, "revision": spec.revision}
            row |= {k: facts[k] for k in ("documents", "distinct", "left_out", "truncated", "centres")}
            row |= {"recall_at_10": searcher.recall_at_10, "recall_queries": searcher.recall_queries}
            row |= {"encoded": pipeline.done.encoded - before, "note": searcher.index.hnsw_problem}
            row["strength"] = strength_row(searcher.calibration)
            rows.append(row)
            if not as_json:
                recall = "" if row["recall_at_10"] is None else f"recall@10 {row['recall_at_10']:.3f} against exact, "
                recall += f"n = {row['recall_queries']} queries" if recall else row["note"]
                typer.echo(
                    f"{name}: {row['documents']} documents, {row['distinct']} distinct vectors, "
                    f"{row['left_out']} left out, {row['truncated']} texts cut; {row['kind']}, {recall}; "
                    f"{row['encoded']} encoded now"
                )
                print_strength(row["strength"])
    except (DataError, ModelUnavailable, OSError) as error:
        _fail(error)
    finally:
        bar.close()
    for note in pipeline.done.notes:
        typer.echo(note, err=True)
    if as_json:
        print_json(rows)


def _pipeline(model: str, workspace: Any) -> Any:
    from core.embed.pipeline import Pipeline
    from core.models import specs
    from core.models.base import ModelUnavailable

    try:
        return Pipeline(specs.load(model), workspace)
    except (ModelUnavailable, ValueError, KeyError) as error:
        _fail(error.args[0] if error.args else error)


@app.command()
def search(
    data: Data,
    task: Task,
    text: Annotated[str, typer.Option(help="Words.")] = "",
    image: Annotated[Path | None, typer.Option(help="Picture file.", readable=False)] = None,
    query: Annotated[str, typer.Option(help="A query of the data set, COLLECTION/ID; its judgements mark hits.")] = "",
    weight: Annotated[float | None, typer.Option(help="Weight of the picture, 0 … 1.")] = None,
    k: Annotated[int, typer.Option("--k", "-k", help="Number of hits.")] = 10,
    domain: Annotated[list[str] | None, typer.Option(help="Only this domain; may be repeated.")] = None,
    specialty: Annotated[list[str] | None, typer.Option(help="Only this specialty; may be repeated.")] = None,
    modality: Annotated[list[str] | None, typer.Option(help="Only this modality; may be repeated.")] = None,
    model: Annotated[str, typer.Option(help="Encoder.")] = "medlite",
    exact: Annotated[bool, typer.Option("--exact", help="Search exactly, not by HNSW.")] = False,
    as_json: AsJson = False,
    qrels: Qrels = "test",
) -> None:
    """Search a pool with a picture, words, or both."""
    from core.adapt.pairs import case_of
    from core.data.layouts import DataError
    from core.media.picture import PictureError, open_picture
    from core.models.base import ModelUnavailable
    from core.retrievers.fair import trained_cases
    from core.search.searcher import Asked, Searcher

    bar = _Bar()
    dataset, workspace = _open(data, qrels, bar)
    filters = {"domain": domain or [], "specialty": specialty or [], "modality": modality or []}
    pipeline = _pipeline(model, workspace)
    try:
        own = _own_query(dataset, task, query) if query else None
        images = [open_picture(_bytes(image)).image] if image else []
        if own is not None:
            text = text or own.text
            collection = dataset.collections[own.collection]
            images = images or [open_picture(collection.picture(r)).image for r in own.images]
        trained_on = own is not None and case_of(own) in trained_cases(dataset, pipeline)
        asked = Asked(text, images, weight, k, filters, exact, own, trained_on)
        if not text.strip() and not images:
            raise QueryError("Give --text, --image, or both.")
        searcher = Searcher(dataset, task, pipeline, bar)
        result = searcher.search(asked, bar)
    except (DataError, PictureError, QueryError, ModelUnavailable, OSError) as error:
        bar.close()
        _fail(error)
    bar.close()
    spec = pipeline.encoder.spec
    if as_json:
        about = {"task": task, "text": text, "image": str(image) if image else None, "query": query or None}
        about |= {"weight": result.weight, "k": k, "filters": {f: v for f, v in filters.items() if v}}
        print_json(
            {
                "query": about | {"model": result.model, "data_id": dataset.data_id, "searched": result.searched},
                "model": {"name": result.model, "model_id": spec.model_id, "revision": spec.revision},
                "index": {"kind": result.index_kind, "recall_at_10": result.recall_at_10},
                "strength": dataclasses.asdict(result.strength) if result.strength else None,
                "judged": {"relevant": result.relevant, "best_rank": result.best_relevant, "trained_on": trained_on},
                "hits": [{n: v for n, v in dataclasses.asdict(h).items() if n != "copies"} for h in result.hits],
                "notes": list(result.notes),
            }
        )
        return
    positives_only = dataset.collections[own.collection].positives_only if own is not None else None
    print_result(searcher, result, positives_only)


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
    as_json: AsJson = False,
    qrels: Qrels = "test",
) -> None:
    """Runs and measures of models on every collection and pool; what is stored is not made again."""
    from core.data.layouts import DataError
    from core.evaluate.evaluate import OFFLINE, Choice, Evaluation
    from core.evaluate.measures import ALL
    from core.models.base import ModelUnavailable
    from core.printing import print_evaluation

    if index_kind not in ("exact", "hnsw"):
        _fail(f"--index is {index_kind!r}; use exact or hnsw.", 2)
    bar = _Bar()
    dataset, workspace = _open(data, qrels, bar)
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
    except (DataError, QueryError, ModelUnavailable, KeyError, OSError) as error:
        bar.close()
        _fail(error.args[0] if isinstance(error, KeyError) else error)
    bar.close()
    if as_json:
        print_json(rows)
    else:
        print_evaluation(rows)


@app.command()
def compare(
    data: Data,
    run: Annotated[list[str] | None, typer.Option(help="Model to show; may be repeated. All when left out.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    measure: Annotated[str, typer.Option(help="Measure that is compared.")] = "nDCG@10",
    as_json: AsJson = False,
    qrels: Qrels = "test",
) -> None:
    """Which stored runs are better, and which differences are not established; every listed run takes part."""
    from core.analyze.compare import compare as compare_runs
    from core.analyze.listed import listed
    from core.data.layouts import DataError
    from core.printing import print_comparison

    bar = _Bar()
    dataset, workspace = _open(data, qrels, bar)
    results = []
    try:
        for name in task or dataset.tasks:
            dataset.pool(name)
            scored, refused = listed(dataset, workspace, name, measure)
            for reason in refused:
                typer.echo(reason, err=True)
            unknown = sorted(set(run or ()) - {s.name for s in scored})
            if unknown:
                known = ", ".join(s.name for s in scored) or "none"
                _fail(f"{name} has no listed run of {unknown[0]!r}; there are: {known}. evaluate makes runs.")
            if scored:
                results.append(compare_runs(scored).as_dict(run))
    except (DataError, ValueError, OSError) as error:
        _fail(error)
    if not results:
        _fail("There is no stored run of this data set. python -m core evaluate makes them.")
    if as_json:
        print_json(results)
    else:
        print_comparison(results)


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

    bar = _Bar()
    try:
        rows = fill(out, model, bar)
    except (DataError, ModelUnavailable, KeyError, OSError) as error:
        bar.close()
        _fail(error.args[0] if isinstance(error, KeyError) else error)
    bar.close()
    if as_json:
        print_json(rows)
    else:
        for row in rows:
            line(f"{row['model']:20} {row['model_id']}, {row['revision']}: {row['task']}, {row['runs']} runs")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise QueryError(f"The picture {path} cannot be read: {error.strerror}.") from None


@app.command()
def adapt(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for the head; a head that stands there is replaced.")],
    split: Annotated[str, typer.Option(help="Train on the queries with this meta.split; all when empty.")] = "train",
    folds: Annotated[int, typer.Option(help="Also make this many cross-fitting heads of all cases (0: none).")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of topics, batches and weights.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Train medlite's head on your own cases; the towers stay as they are. Writes a model card."""
    from core.adapt.command import AdaptError, adapt_head
    from core.models.base import ModelUnavailable

    bar = _Bar()
    dataset, workspace = _open(data, "test", bar)
    try:
        result = adapt_head(dataset, split, out, workspace, bar, folds=folds, seed=seed)
        result["runs"] = _cross_fitted(dataset, out, workspace, folds, seed, bar) if folds else []
    except (AdaptError, ModelUnavailable, ValueError, OSError) as error:
        bar.close()
        _fail(error)
    bar.close()
    if as_json:
        print_json(result)
        return
    line(f"Wrote {out}; read {out / 'README.md'} for what it did and how well it generalises.")
    for name, value in result["success"].items():
        line(f"{name}: words to picture {value['text_to_image']:.3f}, picture to picture {value['image_to_image']:.3f}")
    for number, folder in enumerate(result["folds"]):
        line(f"fold {number}: {folder}")
    for row in result["runs"]:
        line(
            f"cross-fitted run of {row['place']}: nDCG@10 "
            + ("N/A" if row["ndcg_at_10"] is None else f"{row['ndcg_at_10']:.3f}")
            + f" (n = {row['n']} queries / {row['clusters']} topics, {row['interval']}); {row['folder']}"
        )


def _cross_fitted(dataset: Any, head: Path, workspace: Any, folds: int, seed: int, bar: _Bar) -> list[dict[str, Any]]:
    """The runs that stand for a head on the data it was trained on, made where they are missing."""
    from core.data.topics import cluster_of
    from core.embed.pipeline import Pipeline
    from core.evaluate.make import make_runs
    from core.evaluate.run import document, open_run
    from core.evaluate.stats import cluster_mean
    from core.models.medlite import MedliteEncoder
    from core.retrievers.fair import Fair

    fair = Fair(dataset, Pipeline(MedliteEncoder(head_folder=head), workspace), bar, folds, seed)
    rows = []
    for made in (made for task in dataset.tasks for made in make_runs(fair, task, bar)):
        values = open_run(made.folder).measures["nDCG@10"]
        collection = dataset.collections[made.info.place]
        clusters = [cluster_of(collection.query(document(name, collection.key)[1])) for name in values]
        mean = cluster_mean(list(values.values()), clusters)
        ends = "no interval" if mean.low is None else f"{mean.low:.3f} … {mean.high:.3f}, {mean.method}"
        value = mean.mean if mean.n else None
        row = {"place": made.info.place, "folder": str(made.folder), "ndcg_at_10": value, "n": mean.n}
        rows.append(row | {"clusters": mean.clusters, "interval": ends})
    return rows


def _own_query(dataset: Any, task: str, name: str) -> Any:
    for collection in dataset.pool(task).collections:
        if name.startswith(f"{collection.key}/"):
            position = collection.queries.find(name.removeprefix(f"{collection.key}/"))
            if position is not None:
                return collection.query_at(position)
    raise QueryError(f"There is no query {name!r} in {task}. Write COLLECTION/ID, for example {task}/Head/ID.")


if __name__ == "__main__":
    app(prog_name="python -m core")
