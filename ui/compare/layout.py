"""The widgets of the Model comparison tab and their wiring."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from core.analyze.quality import COSTS
from core.context import AppContext
from core.evaluate.uploaded import MAX_BYTES
from ui.charts import chart
from ui.compare.files import Files
from ui.compare.opening import Opening
from ui.compare.state import Brought, Choice
from ui.compare.tab import EVERYWHERE, WHOLE, Compare
from ui.data import DataRow
from ui.download import download
from ui.failures.layout import Entry
from ui.picked import picked
from ui.pulse import pulse

PRIVATE = {"api_visibility": "private"}
QUIET = {"show_progress": "hidden", **PRIVATE}
LIGHT = {"queue": False, **QUIET}
HOUR = 3600

PROGRESS = gr.Progress()
"""As a default it marks the parameter that Gradio fills in anew for each run."""

BRING = (
    "A TREC run, plain or gzip: query, Q0, document, rank, score, tag. Ids as in the data set; for the whole task "
    "with the collection before them (summary%2FHead/q1, each part percent-encoded) where one id stands in several."
)

SCRIPTS = (Path(__file__).parent / "scripts.js").read_text(encoding="utf-8").split("//# ")[1:]
_SCRIPT = {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in SCRIPTS}


def _html(value: str = "", script: str | None = None, **more: object) -> gr.HTML:
    return gr.HTML(value, js_on_load=script, apply_default_css=False, elem_classes="m3-flat", **more)


def _heading(words: str) -> None:
    _html(f"<h2>{words}</h2>")


def build(context: AppContext, row: DataRow, cases: Entry) -> None:
    """Add the tab's widgets to the open blocks and connect them; ``cases`` opens queries in the other tab."""
    tab = Compare(context)
    files, cases_of = Files(tab), Opening(tab)
    label = row.data
    shown_for, taken, offered = gr.State(None), gr.State(None), gr.State(None)
    brought, always, fresh = (gr.State(value, time_to_live=HOUR) for value in (Brought(), True, True))
    seen = pulse("compare")
    keys = _html("<i></i>", script=_SCRIPT["keys"], visible="hidden")

    with gr.Column(elem_id="compare"):
        with gr.Row(elem_id="compare-choice"):
            task = gr.Dropdown([], label="Task", interactive=True, elem_id="compare-task", min_width=150)
            measure = gr.Dropdown([], label="Measure", interactive=True, elem_id="compare-measure", min_width=130)
            by = gr.Dropdown([], label="By", interactive=True, elem_id="compare-by", min_width=130)
        shown = gr.Dropdown(
            [], label="Shown (all, when empty)", multiselect=True, interactive=True, elem_id="compare-shown"
        )
        finding = _html(elem_id="compare-finding", min_height=60)
        warned = _html(elem_id="compare-warned")
        bars = chart("compare-bars", 420, "Means by model and group with intervals")
        means = _html(elem_id="compare-means")
        _heading("Every group at a glance")
        problem = _html(elem_id="compare-problem")
        heat = chart("compare-heat", 420, "Means by group and model")
        with gr.Accordion("The same as a table", open=False):
            by_group = _html(elem_id="compare-groups")
        _heading("Is A better than B?")
        with gr.Row(elem_id="compare-two"):
            a = gr.Dropdown([], label="A", interactive=True, elem_id="compare-a", min_width=200)
            b = gr.Dropdown([], label="B", interactive=True, elem_id="compare-b", min_width=200)
            swap = gr.Button("Swap A and B", size="sm", elem_id="compare-swap")
        pair = _html(script=_SCRIPT["outcome"], elem_id="compare-pair")
        said = _html(elem_id="compare-said")
        with gr.Row(elem_id="compare-queries"):
            with gr.Column(min_width=320):
                scatter = chart("compare-scatter", 420, "Scores of every query under A and B", "No two models to draw.")
            with gr.Column(min_width=320):
                largest = _html(script=_SCRIPT["query"], elem_id="compare-largest")
        _heading("What the two solve together")
        both = _html(elem_id="compare-both", min_height=60)
        _heading("Quality against cost")
        cost_by = gr.Radio(
            [(words, name) for name, words in COSTS.items()],
            value=next(iter(COSTS)),
            label="Cost",
            interactive=True,
            elem_id="compare-cost-by",
        )
        cost = chart("compare-cost", 360, "Quality against cost")
        costs = _html(elem_id="compare-costs")
        _heading("Beside the published figures")
        published = chart("compare-published", 420, "Published figures and ours")
        facts = _html(elem_id="compare-facts")
        _heading("Files")
        with gr.Row(elem_id="compare-files"):
            to_report = gr.Button("Save report (HTML)", size="sm", elem_id="save-report")
            to_csv = gr.Button("Save figures (CSV)", size="sm", elem_id="save-figures")
            to_latex = gr.Button("Save figures (LaTeX)", size="sm", elem_id="save-latex")
            to_pairs = gr.Button("Save differences (CSV)", size="sm", elem_id="save-pairs")
            to_queries = gr.Button("Save scores of A and B (CSV)", size="sm", elem_id="save-scores")
            to_mteb = gr.Button("Save MTEB results (zip)", size="sm", elem_id="save-mteb")
        with gr.Accordion("Bring your own run", open=False, elem_id="compare-bring"):
            _html(f"<p>{BRING}</p>")
            with gr.Row():
                name = gr.Textbox(label="Name of the model", max_length=60, interactive=True, elem_id="bring-name")
                revision = gr.Textbox(
                    label="Revision (may be empty)", max_length=60, interactive=True, elem_id="bring-revision"
                )
                where = gr.Dropdown(
                    [(EVERYWHERE, WHOLE)],
                    value=WHOLE,
                    label="For",
                    interactive=True,
                    elem_id="bring-where",
                )
            stays = "It stays in this browser session only." if context.notes is None else ""
            run = picked("bring-run", "Choose a run", ".txt,.run,.trec,.gz,.tsv,.res", MAX_BYTES)
            _html(
                "<p>Lines are checked one by one; what is wrong is named with its line. Ids that the data set lacks "
                f"are counted. {stays}</p>"
            )
        made = _html(elem_id="compare-provenance")
    file = download("compare-download")

    widgets = [label, task, measure, by, shown, a, b]
    views = [finding, warned, bars, means, pair, made]
    details = [problem, heat, by_group, scatter, largest, cost, costs, published, facts]

    def choice_of(values) -> Choice:
        name, task, measure, by, shown, a, b = values
        return Choice(name, task, measure, by, tuple(shown or ()), a or "", b or "")

    # Spelled out where Gradio finds the places of event and progress by these names.
    def see(*values):
        *chosen, brought = values
        return tab.overview(choice_of(chosen), brought)

    def see_details(wanted, *values):
        if not wanted:
            return [gr.skip()] * len(details)
        *chosen, brought, cost_by = values
        return tab.details(choice_of(chosen), brought, cost_by)

    def see_pair(*values):
        *chosen, brought = values
        return tab.pair(choice_of(chosen), brought)

    def see_both(wanted, label, task, measure, by, shown, a, b, brought, progress=PROGRESS):
        if not wanted:
            return gr.skip()
        return tab.complement(choice_of((label, task, measure, by, shown, a, b)), brought, progress)

    def see_cost(*values):
        *chosen, brought, cost_by = values
        return tab.cost(choice_of(chosen), brought, cost_by)

    def ask_query(event: gr.EventData, *values):
        *chosen, brought = values
        return cases_of.query(choice_of(chosen), brought, event)

    def ask_point(event: gr.EventData, *values):
        *chosen, brought = values
        return cases_of.point(choice_of(chosen), brought, event)

    def ask_outcome(event: gr.EventData, *values):
        *chosen, brought = values
        return cases_of.outcome(choice_of(chosen), brought, event)

    def bring(event: gr.EventData, label, task, where, name, revision, brought):
        return files.bring(label, task, where, name, revision, brought, event)

    def choose_again(*values):
        *chosen, taken = values
        return tab.choose(*chosen, taken) if taken else [gr.skip()] * len(choose_args[2])

    # Figures are made in tenths of a second and kept: they do not wait in the queue. Of fusions one is made at a time.
    # What is chosen while something is made is asked for once that is there, so that the last choice is shown last.
    last = {"trigger_mode": "always_last", **PRIVATE}
    seeing = {"queue": False, "show_progress_on": [finding], **last}
    fusing = {"show_progress_on": [both], "concurrency_id": "fusing", "concurrency_limit": 1, **last}
    menus = [task, measure, by, shown, a, b, offered, shown_for, where]
    pair_args = [see_pair, [*widgets, brought], [pair, scatter, largest]]
    both_args = [see_both, [always, *widgets, brought], both]
    choose_args = [tab.choose, [*widgets, offered, brought], [*menus, *views]]

    def and_details(event, flag=always):
        """What stands further down comes after what is seen at once."""
        return event.then(
            see_details, [flag, *widgets, brought, cost_by], details, queue=False, show_progress="hidden", **last
        )

    opens = {**seeing, "trigger_mode": "once"}
    opening = seen.shown(tab.open_tab, [label, shown_for, brought], [*menus, *views, fresh], **opens)
    and_details(opening, fresh).then(see_both, [fresh, *widgets, brought], both, **fusing)
    # A menu says twice that it has another value. It says once that something was chosen, but only by the pointer.
    chosen = gr.on([task.select, measure.select, by.select], *choose_args, **seeing)
    for event in (chosen, keys.chose(*choose_args, **opens)):
        and_details(event).then(*both_args, **fusing)
    and_details(shown.change(see, [*widgets, brought], views, **seeing))  # emptying it is no input
    for event in (gr.on([a.select, b.select], *pair_args, **seeing), keys.paired(*pair_args, **opens)):
        event.then(*both_args, **fusing)
    swap.click(lambda a, b: (b, a), [a, b], [a, b], **LIGHT).then(*pair_args, **seeing).then(*both_args, **fusing)
    cost_by.input(see_cost, [*widgets, brought, cost_by], [cost, costs], **LIGHT)

    for event in (
        largest.query(ask_query, [*widgets, brought], [cases.request, said], **LIGHT),
        scatter.point(ask_point, [*widgets, brought], [cases.request, said], **LIGHT),
        pair.outcome(ask_outcome, [*widgets, brought], [cases.request, said], **LIGHT),
    ):
        cases.follow(event)

    chosen = [*widgets, brought]

    def saved(make):
        def save(*values):
            *chosen, brought = values
            return make(choice_of(chosen), brought)

        return save

    to_csv.click(saved(lambda choice, own: files.standings(choice, own, "csv")), chosen, file, **LIGHT)
    to_latex.click(saved(lambda choice, own: files.standings(choice, own, "latex")), chosen, file, **LIGHT)
    to_pairs.click(saved(files.pairs), chosen, file, **LIGHT)
    to_queries.click(saved(files.per_query), chosen, file, **LIGHT)
    to_mteb.click(saved(files.mteb), chosen, file, **QUIET)

    def save_report(*values):
        *chosen, brought, cost_by = values
        return files.report(choice_of(chosen), brought, cost_by)

    to_report.click(save_report, [*chosen, cost_by], file, **QUIET)

    brings = run.file(bring, [label, task, where, name, revision, brought], [run, brought, taken], **QUIET)
    brings = brings.then(choose_again, [*choose_args[1], taken], choose_args[2], **seeing)
    and_details(brings).then(*both_args, **fusing)
