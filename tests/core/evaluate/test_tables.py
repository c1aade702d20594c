"""Tables: CSV that is read back equal and is harmless in spreadsheets, LaTeX that is escaped and complete."""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evaluate.tables import escape, plain_csv, to_csv, to_latex


def row(model: str = "medlite", **changes) -> dict:
    domains = {
        "Head": {"mean": 1 / 3, "n": 40, "clusters": 11, "interval": [0.25, 0.5]},
        "Spine & Muscles": {"mean": 0.75, "n": 60, "clusters": 9, "interval": None},
        "Thorax": None,
    }
    made = {"model": model, "model_id": "org/m_1", "revision": "r1", "task": "summary", "measure": "nDCG@10", "n": 100}
    made |= {"clusters": 20, "macro": None, "micro": 0.58333333333, "interval": None, "by_domain": domains}
    return made | {"seen_excluded": 0} | changes


FULL = row("full", macro=0.12345678901, interval=[0.1, 0.2], seen_excluded=7)


def test_csv_is_read_back_equal() -> None:
    found = list(csv.DictReader(io.StringIO(to_csv([row(), FULL]))))
    assert [f["model"] for f in found] == ["medlite", "full"]
    assert float(found[1]["macro"]) == 0.12345678901 and float(found[1]["high"]) == 0.2
    assert float(found[0]["micro"]) == 0.58333333333 and float(found[0]["Head"]) == 1 / 3
    assert found[0]["macro"] == found[0]["low"] == found[0]["Thorax"] == found[0]["Thorax n"] == "N/A"
    assert found[0]["Spine & Muscles"] == "0.75" and found[0]["Spine & Muscles low"] == "N/A"
    assert (found[0]["Head n"], found[0]["Head clusters"], found[0]["Head low"]) == ("40", "11", "0.25")
    assert (found[1]["n"], found[1]["clusters"], found[1]["seen_excluded"]) == ("100", "20", "7")
    assert "0" not in (found[0]["macro"], found[0]["Thorax"])


def test_domains_of_all_rows_and_nan() -> None:
    other = row("other", by_domain={"Abdomen": {"mean": math.nan, "n": 0, "clusters": 0, "interval": [None, None]}})
    found = list(csv.DictReader(io.StringIO(to_csv([row(micro=np.float64(0.5)), other]))))
    assert found[0]["Abdomen"] == found[1]["Abdomen"] == found[1]["Head"] == found[1]["Abdomen low"] == "N/A"
    assert found[0]["micro"] == "0.5" and found[1]["Abdomen n"] == "0"
    assert "N/A" in to_latex([other]) and "nan" not in to_latex([other]).lower()


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "=cmd|' /C calc'!A0"])
def test_no_cell_is_a_formula(text: str) -> None:
    made = row(text, by_domain={text: {"mean": -0.5, "n": 1, "clusters": 1, "interval": [-1.0, 0.0]}})
    cells = list(csv.reader(io.StringIO(to_csv([made]), newline="")))
    assert "'" + text in cells[0] and cells[1][0] == "'" + text
    assert "-0.5" in cells[1]  # a number stays one


def test_line_breaks_before_a_formula() -> None:
    cells = list(csv.reader(io.StringIO(to_csv([row("\r\n=1", revision="a\rb")]), newline="")))[1]
    assert cells[0] == "' =1" and cells[2] == "a b"


@given(st.text(), st.text())
def test_any_text_stays_in_its_cell(model: str, domain: str) -> None:
    made = row(model, by_domain={domain: None})
    head, cells = csv.reader(io.StringIO(to_csv([made]), newline=""))
    assert len(head) == len(cells) == 20 and cells[0] in (line := " ".join(model.splitlines()), f"'{line}")
    assert not re.match(r"\s*[=+@-]", cells[0])


def test_latex() -> None:
    found = to_latex([row("a_b & 100%"), FULL, row(measure="R@10", task="retrieval")])
    assert found.count(r"\begin{table}") == found.count(r"\end{table}") == 2
    assert r"\caption{Summary, nDCG@10.}" in found and r"\caption{Retrieval, R@10.}" in found
    assert r"Model & Macro & Micro & Head & Spine \& Muscles & Thorax \\" in found
    assert r"a\_b \& 100\% & N/A & 0.583 & 0.333 & 0.750 & N/A \\" in found
    assert r"full & 0.123 & 0.583 & 0.333 & 0.750 & N/A \\" in found
    assert "n = 100 queries in 20 clusters; 95 \\% interval of macro [0.100, 0.200]; 7 queries seen" in found
    assert r"(org/m\_1, r1): n = 100 queries in 20 clusters; 95 \% interval of macro N/A." in found
    for part in found.split(r"\begin{table}")[1:]:
        order = [part.index(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\par\smallskip")]
        assert order == sorted(order)


def test_scope_method_and_training_data_are_said() -> None:
    own = {"scope": "pool", "method": "cluster-robust t, 19 df", "training_data": True}
    rows = [FULL, FULL | own]
    found = list(csv.DictReader(io.StringIO(to_csv(rows))))
    assert [(f["scope"], f["method"], f["training_data"]) for f in found] == [
        ("collections", "", "no"),
        ("pool", "cluster-robust t, 19 df", "yes"),
    ]
    first, second = to_latex(rows).split(r"\end{table}")[:2]
    assert "training data" not in first and r"\caption{Summary, nDCG@10.}" in first
    assert r"\caption{Summary, nDCG@10, all domains searched as one.}" in second
    assert "[0.100, 0.200] (cluster-robust t, 19 df); 7 queries seen in training left out; training data." in second


def test_escape() -> None:
    assert escape(r"\input{x} $1^2 #_~<|>") == (
        r"\textbackslash{}input\{x\} \$1\textasciicircum{}2 \#\_\textasciitilde{}\textless{}\textbar{}\textgreater{}"
    )
    assert escape("a\nb\0\x1b[31m  é") == "a b[31m é"


@given(st.text())
def test_nothing_special_is_left(text: str) -> None:
    left = re.sub(r"\\text[a-z]+\{\}|\\[{}$&#_%]", "", escape(text))
    assert not set(left) & set("\\{}$&#_%^~\n\r\0")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not here")
def test_latex_compiles(tmp_path: Path) -> None:
    body = to_latex([row(r"\x{}^_~&%$#<>|"), FULL])
    text = rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{body}\end{{document}}"
    (tmp_path / "t.tex").write_text(text)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60).returncode == 0


def test_further_columns_come_last_and_are_no_formulas() -> None:
    rows = [row(more={"rank best": 1, "data": "=1"}), row("other", more={"rank best": None, "data": "a\nb"})]
    found = list(csv.reader(io.StringIO(to_csv(rows), newline="")))
    assert found[0][-2:] == ["rank best", "data"] and found[1][-2:] == ["1", "'=1"] and found[2][-2:] == ["N/A", "a b"]
    assert plain_csv([]) == ""
    flat = list(csv.DictReader(io.StringIO(plain_csv([{"a": math.nan, "b": -0.5}, {"a": "@x", "b": None}]))))
    assert flat == [{"a": "N/A", "b": "-0.5"}, {"a": "'@x", "b": "N/A"}]
