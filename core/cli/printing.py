"""How the command line shows things: rows and sentences on stdout that no data and no encoding can break."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import typer


def print_json(value: Any) -> None:
    """One JSON value; characters that stdout cannot encode are escaped."""
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    typer.echo(json.dumps(value, ensure_ascii=ascii_only, allow_nan=False))


def line(text: str) -> None:
    """Print one line; control characters of data are shown, not obeyed, and no encoding makes it fail."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    encoding = sys.stdout.encoding or "ascii"
    typer.echo(shown.encode(encoding, "backslashreplace").decode(encoding))


def print_report(dataset: Any, report: Any) -> None:
    """The counts, faults and notes of ``check``."""
    for text in (f"{dataset.name}: {dataset.root}", f"licence: {dataset.licence}", f"data_id: {dataset.data_id}", ""):
        line(text)
    width = max(len(row["collection"]) for row in report.collections)
    line(f"{'collection':{width}}  queries  documents  judged  judgements      pictures  templates  repeated captions")
    for row in report.collections:
        template, repeated = row["template_texts"], row["repeated_captions"]
        line(
            f"{row['collection']:{width}}  {row['queries']:7}  {row['documents']:9}  {row['judgements']:6}  "
            f"{row['judgement_type']:14}  {row['pictures']['distinct']:8}  "
            f"{template['lines']:4} ({template['distinct']})  "
            f"{repeated['lines']:6} lines, {repeated['distinct']} captions"
        )
    template, repeated = report.totals["template_texts"], report.totals["repeated_captions"]
    line("")
    line(
        f"In all: {report.totals['queries']} queries, {report.totals['documents']} documents, "
        f"{report.totals['pictures']} distinct pictures that open; {template['lines']} lines of template text "
        f"({template['distinct']} distinct pictures or ids); {repeated['lines']} query lines with a repeated caption "
        f"({repeated['distinct']} distinct captions)."
    )
    for title, findings in (("Faults", report.faults), ("Notes", report.notes)):
        line("")
        line(f"{title}: {len(findings) or 'none'}")
        shown: Counter[str] = Counter()
        for kind, number in Counter(f.kind for f in findings).most_common():
            line(f"  {kind}: {number}")
            for f in findings:
                if f.kind == kind and (title == "Faults" or shown[kind] < 3):
                    shown[kind] += 1
                    line(f"    {f.file}:{f.line}  {f.id}  {f.detail}")
    if any(number > 3 for number in Counter(f.kind for f in report.notes).values()):
        line("")
        line("Of each kind of note three are shown; --json lists all.")


def strength_row(calibration: Any) -> dict[str, Any]:
    """The calibration of a pool for tables and JSON: by mode what was measured, and on how many."""
    names = ("n", "clusters", "auroc", "weak_answered", "weak_unanswered", "n_unanswered")
    modes = {mode: {name: getattr(curve, name) for name in names} for mode, curve in calibration.curves.items()}
    return {"source": calibration.source, "default_weight": calibration.default_weight, "modes": modes}


def print_strength(row: dict[str, Any]) -> None:
    """What `strength_row` gives, a line a mode."""
    line(f"  match strength, from {row['source']}; picture and words at weight {row['default_weight']:.2f}")
    for mode, found in row["modes"].items():
        if not found["n"]:
            line(f"    {mode:8} no judged queries")
            continue
        shown = {
            name: "not measured" if found[name] is None else f"{found[name]:.3f}"
            for name in ("auroc", "weak_answered", "weak_unanswered")
        }
        line(
            f"    {mode:8} AUROC {shown['auroc']} (n = {found['n']} queries / {found['clusters']} topics); weak: "
            f"{shown['weak_answered']} of them, {shown['weak_unanswered']} of {found['n_unanswered']} with their "
            "relevant documents taken out"
        )


def _strength_words(strength: Any) -> str:
    from core.search.strength import WEAK_MEANS

    band = "" if strength.band is None else f"{strength.band}: " if strength.band != "weak" else f"weak, {WEAK_MEANS}: "
    reason = f" ({strength.reason})" if strength.calibrated and strength.reason else ""
    return f"{band}{strength.sentence}{reason}"


def print_result(searcher: Any, result: Any, positives_only: bool | None) -> None:
    """Hits of a search; ``positives_only`` is None where no query's judgements mark them."""
    from core.search.views import judgement

    spec = searcher.encoder.spec
    recall = "" if result.recall_at_10 is None else f" (recall@10 {result.recall_at_10:.3f})"
    line(
        f"{result.searched} documents of {searcher.task} searched with {result.model} ({spec.model_id}, "
        f"{spec.revision}), {result.index_kind}{recall}, "
        f"picture weight {result.weight:.2f}, {result.seconds * 1000:.0f} ms"
    )
    if result.strength is not None:
        line(f"match strength: {_strength_words(result.strength)}")
    if result.best_relevant is not None:
        line(f"best relevant document: rank {result.best_relevant} ({result.relevant} relevant here)")
    for note in result.notes:
        line(note)
    line("rank   score  picture   words  judgement     document")
    for hit in result.hits:
        collection = searcher.pool.collection(hit.collection)
        doc = collection.doc(hit.doc_id)
        mark = "" if positives_only is None else judgement(hit.relevance, positives_only).replace("-", " ")
        words = " ".join(doc.full_text.split())[:80]
        line(
            f"{hit.rank:4}  {hit.score:6.3f}  {hit.image_share:7.3f}  {hit.text_share:6.3f}  {mark:12}  "
            f"{hit.collection}/{hit.doc_id}  {words}"
        )


def print_evaluation(rows: list[dict[str, Any]], measure: str = "nDCG@10") -> None:
    """A table a task and scope: models down, domains across, with n (queries / clusters) and the macro's interval."""
    shown = [row for row in rows if row["measure"] == measure]
    for task, scope in dict.fromkeys((row["task"], row["scope"]) for row in shown):
        table = [row for row in shown if (row["task"], row["scope"]) == (task, scope)]
        domains = list(table[0]["by_domain"])
        cells = [["model", *domains, "macro", "95 % interval", "micro", "n / clusters"]]
        for row in table:
            means = [_value(cell and cell["mean"]) for cell in (row["by_domain"][domain] for domain in domains)]
            ends = "" if row["interval"] is None else "{:.3f} … {:.3f}".format(*row["interval"])
            whole = [_value(row["macro"]), ends, _value(row["micro"]), f"{row['n']} / {row['clusters']}"]
            cells.append([row["model"], *means, *whole])
        widths = [max(len(parts[at]) for parts in cells) for at in range(len(cells[0]))]
        line(f"{measure}, {task}, {'by collection' if scope == 'collections' else 'whole pool'}")
        for name, *values in cells:
            line("  ".join((name.ljust(widths[0]), *map(str.rjust, values, widths[1:]))))
        for row in table:
            for note in _notes(row):
                line(f"  {row['model']}: {note}")
        line("")
    methods = sorted({row["method"].split(" (")[0] for row in shown if row["interval"]})
    if methods:
        line(f"Intervals: {', '.join(methods)}; the unit is the cluster, N/A is never zero.")


def _value(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.3f}"


def _notes(row: dict[str, Any]) -> list[str]:
    """What must be known of a row beside its numbers."""
    if row["reason"]:
        return [row["reason"]]
    notes = []
    if row["training_data"]:
        notes.append("training data: the model saw queries of this data set")
    elif row["fold_plan"]:
        notes.append("cross-fitted: each query is answered by a head that saw neither its case nor its topic")
    if row["seen_excluded"]:
        notes.append(f"{row['seen_excluded']} queries of its training cases and topics are left out")
    return notes


def print_comparison(results: list[dict[str, Any]]) -> None:
    """Per task: means with rank intervals, then every pair with its verdict and the smallest detectable difference."""
    for result in results:
        for group in (result["macro"], *result["domains"]):
            reason = f": {group['reason']}" if group["reason"] else ""
            line(f"{result['measure']}, {result['task']}, {group['name']}{reason}")
            for one in group["standings"]:
                estimate, rank = one["estimate"], one["rank"]
                place = "N/A" if rank is None else f"rank {'-'.join(map(str, dict.fromkeys(rank)))}"
                line(
                    f"  {one['name']:24} {_value(estimate['mean'])} {_ends(estimate)}  {place:9} "
                    f"n = {estimate['n']} / {estimate['clusters']}{'  ' + one['reason'] if one['reason'] else ''}"
                )
            for pair in group["pairs"]:
                p = "not tested" if pair["p_adjusted"] is None else f"p {pair['p_adjusted']:.4f} (Holm)"
                line(
                    f"  {pair['a']} − {pair['b']}: {pair['difference']['mean']:+.3f} {_ends(pair['difference'])}, {p}: "
                    f"{pair['verdict']}; detectable from {_value(pair['detectable'])}"
                )
            line("")
        for warning in result["warnings"]:
            line(f"Warning: {warning}")


def print_costs(found: list[Any]) -> None:
    """A line a model and task, with the load it was measured under, and on which machine."""
    heads = ("ms a document", "ms a query", "bytes a document", "model, MB", "load", "n (documents / queries)")
    line(f"{'task':16} {'model':20} {'  '.join(heads)}")
    for one in found:
        if one.reason:
            line(f"{one.task:16} {one.model:20} {one.reason}")
            continue
        line(
            f"{one.task:16} {one.model:20} {1000 * one.document_seconds:13.2f}  {1000 * one.query_seconds:10.2f}  "
            f"{one.document_bytes:16,.0f}  {one.model_bytes / 1e6:9.1f}  {one.conditions['load']:4}  "
            f"{one.documents} / {one.queries}"
        )
    where = ("{machine}, {cores} cores, {date}".format(**one.conditions) for one in found if not one.reason)
    for place in dict.fromkeys(where):
        line(f"Measured on {place}; times under load, and of other machines, are not comparable.")


def _ends(estimate: dict[str, Any]) -> str:
    return "" if estimate["low"] is None else f"[{estimate['low']:.3f}, {estimate['high']:.3f}]"


def print_published(found: list[Any]) -> None:
    """Our means beside published ones, with why they need not agree; never one table."""
    line("Published results (facts of the paper, not made here) beside ours, nDCG@10 × 100:")
    reasons: dict[str, str] = {}
    for one in found:
        ours, theirs = (None if v is None else 100 * v for v in (one.ours, one.published.ndcg_at_10))
        shown = ["N/A" if v is None else f"{v:.1f}" for v in (ours, theirs)]
        gap = "" if one.difference is None else f", difference {100 * one.difference:+.1f}"
        same = "the same model" if one.same_model else f"published: {one.published.model}"
        line(f"  {one.task:16} {one.model:20} {shown[0]:>5} against {shown[1]:>5}{gap}  ({same})")
        reasons |= {reason.name: f"{reason.text} ({reason.when})" for reason in one.reasons}
    for name, text in reasons.items():
        line(f"  {name}: {text}")
