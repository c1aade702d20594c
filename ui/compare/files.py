"""Files out of the Model comparison tab, and the run that a visitor brings."""

from __future__ import annotations

from collections.abc import Callable

import gradio as gr

from core.analyze import league_report
from core.analyze.session_runs import session_run
from core.analyze.two import query_rows
from core.evaluate.tables import plain_csv
from core.evaluate.uploaded import MAX_BYTES, Upload, checked_name, read_upload, store_upload
from core.records import TASK_LABELS, QueryError
from ui import errors
from ui.cards import escape
from ui.compare.report_file import Section, report_file
from ui.compare.state import Brought, Choice
from ui.compare.tab import Compare, More
from ui.download import refusal, sent
from ui.picked import bytes_of, told


class Files:
    """The callbacks, bound to those of the tab."""

    def __init__(self, tab: Compare) -> None:
        self.tab, self.context = tab, tab.context

    def standings(self, choice: Choice, brought: Brought, kind: str) -> str:
        """The shown figures as CSV or LaTeX."""

        def file() -> tuple[str, str, bytes]:
            screen = self.tab.screen(choice, brought)
            name = f"comparison-{choice.task}-{choice.measure}-by-{choice.by}"
            if kind == "csv":
                return f"{name}.csv", "text/csv", league_report.standings_csv(screen.league, screen.shown).encode()
            return f"{name}.tex", "application/x-tex", league_report.latex(screen.league, screen.shown).encode()

        return _saved(choice, file)

    def pairs(self, choice: Choice, brought: Brought) -> str:
        """Every difference with its verdict as CSV."""

        def file() -> tuple[str, str, bytes]:
            league = self.tab.screen(choice, brought).league
            name = f"differences-{choice.task}-{choice.measure}-by-{choice.by}.csv"
            return name, "text/csv", league_report.pairs_csv(league).encode()

        return _saved(choice, file)

    def per_query(self, choice: Choice, brought: Brought) -> str:
        """The scores of A and B for each query as CSV."""

        def file() -> tuple[str, str, bytes]:
            screen = self.tab.screen(choice, brought)
            runs = {run.name: run for run in screen.league.scored}
            if choice.a == choice.b or not {choice.a, choice.b} <= runs.keys():
                raise QueryError("Choose two different models that have runs of this task.")
            rows = query_rows(screen.leagues.dataset, runs[choice.a], runs[choice.b])
            name = f"queries-{choice.a}-{choice.b}-{choice.task}-{choice.measure}.csv"
            return name, "text/csv", plain_csv(rows).encode()

        return _saved(choice, file)

    def mteb(self, choice: Choice, brought: Brought) -> str:
        """The means of all listed runs in MTEB's layout, zipped."""

        def file() -> tuple[str, str, bytes]:
            leagues = self.tab.leagues(choice.label)
            data = league_report.mteb_zip(leagues, choice.task, brought.scored(leagues.dataset.data_id))
            return f"mteb-{choice.task}.zip", "application/zip", data

        return _saved(choice, file)

    def report(self, choice: Choice, brought: Brought, cost_by: str) -> str:
        """Everything on the screen as one HTML file."""

        def file() -> tuple[str, str, bytes]:
            screen, views = self.tab.views(choice, brought, links=False)
            more = self.tab.more(choice, brought, cost_by, links=False)
            league = screen.league
            label = TASK_LABELS.get(choice.task, choice.task)
            sections = [
                Section(f"By {league.by}", [views.bars], views.standings),
                Section("Every group at a glance", [more.heat], more.by_group),
                *self._pair(choice, brought, views.pair, more),
                Section("Quality against cost", [more.cost], more.costs),
                Section("Beside the published figures", [more.published], more.facts),
            ]
            heading = f"{league.dataset_name}: {label}, {league.measure}"
            made = report_file(heading, views.finding + views.warnings, sections, league.conditions)
            return f"comparison-{choice.task}-{choice.measure}.html", "text/html", made

        return _saved(choice, file)

    def _pair(self, choice: Choice, brought: Brought, pair: str, more: More) -> list[Section]:
        """The sections of two models, none where there are no two."""
        if not choice.b or choice.a == choice.b:
            return []
        return [
            Section(f"Is {choice.a} better than {choice.b}?", [more.scatter], pair + more.largest),
            Section("What the two solve together", [], self.tab.complement(choice, brought)),
        ]

    def bring(
        self, label: str, task: str | None, where: str, name: str, revision: str, brought: Brought, event: gr.EventData
    ) -> tuple[str, Brought, str]:
        """Take in a TREC run of the chosen task: what is to be said, the session's runs, and the run's name, "" where
        it was not taken."""
        try:
            dataset = self.context.dataset(label)
            task = task or next(iter(dataset.tasks), None)
            if task is None:
                raise QueryError("This data set has no task that a run could be of.")
            data, file_name = bytes_of(event, MAX_BYTES)
            name = checked_name(name, self._taken(label, task))
            upload = read_upload(data, file_name, dataset, task, name, revision, where or None)
            if self.context.notes is None:
                brought = brought.put(session_run(upload, dataset, self.context.workspace))
                kept = "It stays in this browser session only."
            else:
                self._check_new(label, upload)
                store_upload(upload, dataset, self.context.workspace)
                kept = "It is stored in the workspace, as by python -m core import."
        except Exception as error:
            return told(errors.why(error)), brought, ""
        notes = "".join(f"<li>{escape(note)}</li>" for note in upload.notes)
        queries = sum(len(one.rankings) for one in upload.imported.values())
        said = (
            f'<div class="m3-saved" role="status"><p>{escape(name)}: {queries:,} queries of '
            f"{escape(', '.join(upload.imported))}, {upload.lines:,} lines. {kept}</p>"
            f"{f'<ul>{notes}</ul>' if notes else ''}</div>"
        )
        return told(said), brought, name

    def _taken(self, label: str, task: str) -> set[str]:
        """Names that a run of this session cannot have: a table could not tell it from a listed one."""
        if self.context.notes is not None:
            return set()
        leagues = self.tab.leagues(label)
        return {run.name for measure in leagues.measures(task) for run in leagues.listed(task, measure)[0]}

    def _check_new(self, label: str, upload: Upload) -> None:
        """ValueError where other results of this name are stored for one of the collections: nothing is replaced."""
        known = self.tab.leagues(label).imported(upload.task, upload.name)
        for key in upload.imported:
            if key in known and known[key].info.encoder_ids[0] != upload.file_hash:
                raise ValueError(
                    f"Other results of {upload.name!r} for {key} are stored already; give this run another name, for "
                    "example with its version."
                )


def _saved(choice: Choice, make: Callable[[], tuple[str, str, bytes]]) -> str:
    """A file for the browser to save, or why there is none."""
    return sent(make) if choice.task else refusal("There is no run to save figures of.")
