"""Commands on models and search: index, search, adapt."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from core.cli.base import AsJson, Bar, Data, Qrels, Task, app, fail, open_data, open_pipeline
from core.cli.printing import line, print_json, print_result, print_strength, strength_row
from core.records import QueryError


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

    bar = Bar()
    dataset, workspace = open_data(data, qrels, bar)
    pipeline = open_pipeline(model, workspace)
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
        fail(error)
    finally:
        bar.close()
    for note in pipeline.done.notes:
        typer.echo(note, err=True)
    if as_json:
        print_json(rows)


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

    bar = Bar()
    dataset, workspace = open_data(data, qrels, bar)
    filters = {"domain": domain or [], "specialty": specialty or [], "modality": modality or []}
    pipeline = open_pipeline(model, workspace)
    try:
        own = _own_query(dataset, task, query) if query else None
        images = [open_picture(_bytes(image)).image] if image else []
        if own is not None:
            text = text or own.text
            collection = dataset.collections[own.collection]
            images = images or [open_picture(collection.picture(r)).image for r in own.images]
        trained_on = own is not None and case_of(own) in trained_cases(dataset, pipeline)
        asked = Asked(text, images, weight, k, filters, exact, own, trained_on)
        if own is not None and not text.strip() and not images:
            raise QueryError(f"Query {own.id} has neither words nor a picture; choose another one, or give --text.")
        if not text.strip() and not images:
            raise QueryError("Give --text, --image, or both.")
        searcher = Searcher(dataset, task, pipeline, bar)
        result = searcher.search(asked, bar)
    except (DataError, PictureError, QueryError, ModelUnavailable, OSError) as error:
        bar.close()
        fail(error)
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


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise QueryError(f"The picture {path} cannot be read: {error.strerror}.") from None


def _own_query(dataset: Any, task: str, name: str) -> Any:
    for collection in dataset.pool(task).collections:
        if name.startswith(f"{collection.key}/"):
            position = collection.queries.find(name.removeprefix(f"{collection.key}/"))
            if position is not None:
                return collection.query_at(position)
    raise QueryError(f"There is no query {name!r} in {task}. Write COLLECTION/ID, for example {task}/Head/ID.")


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

    bar = Bar()
    dataset, workspace = open_data(data, "test", bar)
    try:
        result = adapt_head(dataset, split, out, workspace, bar, folds=folds, seed=seed)
        result["runs"] = _cross_fitted(dataset, out, workspace, folds, seed, bar) if folds else []
    except (AdaptError, ModelUnavailable, ValueError, OSError) as error:
        bar.close()
        fail(error)
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


def _cross_fitted(dataset: Any, head: Path, workspace: Any, folds: int, seed: int, bar: Bar) -> list[dict[str, Any]]:
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
