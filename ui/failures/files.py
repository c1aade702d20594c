"""Files out of the Failure cases tab, and notes and re-judgements back in."""

from __future__ import annotations

import json

import gradio as gr

from core.analyze.notes import SessionNotes
from core.analyze.rejudge_files import from_csv, qrels_zip, to_csv
from core.analyze.report import failure_rows, provenance, rows_csv
from ui import errors
from ui.cards import escape
from ui.download import payload, sent
from ui.failures.case_file import case_file
from ui.failures.state import Choice, Listed
from ui.failures.tab import Failures, positions
from ui.picked import bytes_of, told


class Files:
    """The callbacks, bound to those of the tab."""

    def __init__(self, tab: Failures) -> None:
        self.tab, self.context = tab, tab.context

    def save_list(self, listed: Listed, kind: str) -> object:
        """The list as CSV or JSON."""
        if listed.choice is None:
            return gr.skip()
        return sent(lambda: self._list_file(listed, listed.choice, kind))

    def _list_file(self, listed: Listed, choice: Choice, kind: str) -> tuple[str, str, bytes]:
        main = self.tab.diagnoses(choice, listed.overlay)[0][0]
        rows = failure_rows(main, choice.k, choice.measure, positions(main, listed))
        name = f"failures-{choice.run}-{choice.task}"
        if kind == "csv":
            return f"{name}.csv", "text/csv", rows_csv(rows).encode()
        facts = {"provenance": dict(provenance(main)), "k": choice.k, "queries": rows}
        return f"{name}.json", "application/json", json.dumps(facts, ensure_ascii=False, indent=1).encode()

    def save_case(self, listed: Listed, session: SessionNotes | None) -> object:
        """The open case as a file."""
        if listed.choice is None or listed.at is None:
            return gr.skip()
        return sent(lambda: self._case_file(listed, listed.choice, session))

    def _case_file(self, listed: Listed, choice: Choice, session: SessionNotes | None) -> tuple[str, str, bytes]:
        case, annotations = self.tab.case(listed, session)
        facts = provenance(self.tab.diagnoses(choice, listed.overlay)[0][0])
        return f"case-{case.query.id}.html", "text/html", case_file(case, facts, annotations)

    def save_notes(self, label: str, session: SessionNotes | None) -> object:
        """All notes and re-judgements of the data set as CSV."""

        def file() -> tuple[str, str, bytes]:
            annotations = self.tab.notes(session).read(self.context.dataset(label).data_id)
            return "notes-and-judgements.csv", "text/csv", to_csv(annotations).encode()

        return sent(file)

    def save_qrels(self, label: str, session: SessionNotes | None) -> tuple[object, str]:
        """The data set's judgements with the re-judgements, to lie beside the original; and what they cannot say."""
        try:
            dataset = self.context.dataset(label)
            made = qrels_zip(dataset, self.tab.notes(session).read(dataset.data_id).overlay())
        except Exception as error:
            return "", errors.explain(error)
        left = "".join(f"<li>{escape(sentence)}</li>" for sentence in made.left_out[:20])
        said = f"<p>Not in these judgements ({len(made.left_out):,}):</p><ul>{left}</ul>" if made.left_out else ""
        return payload("rejudged-qrels.zip", "application/zip", made.data), said

    def read_notes(
        self, label: str, session: SessionNotes | None, event: gr.EventData
    ) -> tuple[str, SessionNotes | None]:
        """Take in a file of notes and re-judgements that was saved here."""
        try:
            data, name = bytes_of(event)
            dataset = self.context.dataset(label)
            added, updated = self.tab.notes(session).merge(dataset.data_id, from_csv(data, name, dataset))
        except Exception as error:
            return told(errors.why(error)), session
        return told(f'<p class="m3-saved" role="status">{added:,} added, {updated:,} updated.</p>'), session
