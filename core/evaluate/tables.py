"""Tables of an evaluation for spreadsheets (CSV) and papers (LaTeX, booktabs).

Rows are those of ``evaluate --json``: ``model``, ``model_id``, ``revision``, ``task``, ``measure``, ``n`` (queries),
``clusters``, ``macro`` and ``micro`` means 0…1, ``interval`` [low, high] of the macro mean, ``by_domain`` with
``mean``, ``n``, ``clusters`` and ``interval`` of each domain or null, ``seen_excluded`` (queries left out because the
model was trained on them); and where given ``scope`` ("collections", or "pool"), ``method`` (of the interval, or why
there is none), ``training_data`` (true: the figures are from it, and say so) and ``more`` (further columns of the CSV
by name, the same in all rows). None and NaN are written N/A, never 0.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from core.records import TASK_LABELS

NA = "N/A"

_TEXTS = ("model", "model_id", "revision", "task", "measure")
_LABELS = ("scope", "method", "training_data")
_OF_DOMAIN = ("n", "clusters", "low", "high")
_FORMULA = tuple("=+-@")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
} | {c: f"\\{c}" for c in "$&#_%"}


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as CSV with a header, numbers in full; each domain has its mean, n, clusters, low and high.

    A text that a spreadsheet would take for a formula begins with an apostrophe; line breaks in texts are blanks.
    """
    domains = _domains(rows)
    head = [*_TEXTS, "n", "clusters", "macro", "low", "high", "micro", "seen_excluded", *_LABELS]
    head += [name for d in domains for name in (d, *(f"{d} {field}" for field in _OF_DOMAIN))]
    more = list(rows[0].get("more", ())) if rows else []
    cells_of = []
    for row in rows:
        cells = [row[name] for name in (*_TEXTS, "n", "clusters", "macro")]
        cells += [*_interval(row["interval"]), row["micro"], row["seen_excluded"], *_labels(row)]
        for domain in domains:
            own = row["by_domain"].get(domain) or {}
            cells += [own.get("mean"), own.get("n"), own.get("clusters"), *_interval(own.get("interval"))]
        cells_of.append([*cells, *(row["more"][name] for name in more)])
    return _written([*head, *more], cells_of)


def plain_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Flat rows with the same keys as CSV, cells written as in `to_csv`."""
    return _written(list(rows[0]), [list(row.values()) for row in rows]) if rows else ""


def _written(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_cell, head))
    writer.writerows(map(_cell, cells) for cells in rows)
    return out.getvalue()


def to_latex(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table for each task, scope and measure, three decimals, models in the order of ``rows``; needs booktabs.

    Under each table a note gives n, clusters and the interval of each model with its method, the queries left out as
    seen, and says what is training data.
    """
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["task"], _labels(row)[0], row["measure"]), []).append(row)
    return "\n".join(_latex_table(*key, group) for key, group in groups.items())


def _latex_table(task: str, scope: str, measure: str, rows: Sequence[Mapping[str, Any]]) -> str:
    domains = _domains(rows)
    pooled = ", all domains searched as one" if scope == "pool" else ""
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(TASK_LABELS.get(task, task))}, {escape(measure)}{pooled}.}}",
        rf"\begin{{tabular}}{{l{'r' * (2 + len(domains))}}}",
        r"\toprule",
        _latex_row("Model", "Macro", "Micro", *domains),
        r"\midrule",
    ]
    for row in rows:
        means = [(row["by_domain"].get(d) or {}).get("mean") for d in domains]
        lines.append(_latex_row(row["model"], *map(_three, (row["macro"], row["micro"], *means))))
    lines += [r"\bottomrule", r"\end{tabular}", r"\par\smallskip", r"\footnotesize"]
    lines += [rf"{escape(_note(row))}\par" for row in rows]
    return "\n".join([*lines, r"\end{table}", ""])


def _note(row: Mapping[str, Any]) -> str:
    low, high = _interval(row["interval"])
    _, method, training = _labels(row)
    interval = f"[{_three(low)}, {_three(high)}]" if low is not None and high is not None else NA
    note = f"{row['model']} ({row['model_id']}, {row['revision']}): n = {_cell(row['n'])} queries in "
    note += f"{_cell(row['clusters'])} clusters; 95 % interval of macro {interval}" + (f" ({method})" if method else "")
    note += f"; {row['seen_excluded']} queries seen in training left out" if row["seen_excluded"] else ""
    return note + ("; training data." if training == "yes" else ".")


def _labels(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Scope, method, and whether the figures are from training data."""
    return row.get("scope", "collections"), row.get("method", ""), "yes" if row.get("training_data") else "no"


def _latex_row(*cells: str) -> str:
    return " & ".join(map(escape, cells)) + r" \\"


def escape(text: str) -> str:
    """``text`` for LaTeX, on one line."""
    return "".join(_LATEX.get(c, c) for c in " ".join(str(text).split()) if c.isprintable())


def _domains(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(domain for row in rows for domain in row["by_domain"]))


def _interval(interval: Sequence[float | None] | None) -> tuple[float | None, float | None]:
    return (interval[0], interval[1]) if interval else (None, None)


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _three(value: float | None) -> str:
    return NA if _missing(value) else f"{value:.3f}"


def _cell(value: Any) -> str:
    if _missing(value):
        return NA
    if not isinstance(value, str):
        return repr(float(value)) if isinstance(value, float) else str(value)
    line = " ".join(value.splitlines())
    return f"'{line}" if line.lstrip().startswith(_FORMULA) else line
