"""What is written on an open case: drafts, notes, tags and re-judgements."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import gradio as gr

from core.analyze.notes import Notes, NotesError, SessionNotes
from core.analyze.rejudge import Annotations, Judged, Note, now, tags_of
from ui import errors
from ui.failures import notes_form, sheet
from ui.failures.state import Drafts, Listed

if TYPE_CHECKING:
    from ui.failures.tab import Failures

SAVED = '<p role="status">Saved.</p>'
UNSAVED = '<p role="status">This note is not saved yet.</p>'
JUDGED = "Judgement saved. Switch on Score with re-judgements to count it."
JUDGED_AGAIN = "Judgement saved. Press Score again to count it."
NO_AUTHOR = "Give your name or initials first, so that others know who said it."


class Acts:
    """The callbacks, bound to those of the tab."""

    def __init__(self, tab: Failures) -> None:
        self.tab, self.context = tab, tab.context

    def keep_draft(
        self, listed: Listed, drafts: Drafts, author: str, session: SessionNotes | None, event: gr.EventData
    ):
        """What is written and not saved yet, kept for when the case is opened again."""
        written = notes_form.note_of(event)
        if written is None or not listed.data_id:
            return drafts
        key, text, tags = written
        try:
            mine = _mine(self.tab.notes(session).read(listed.data_id), key, author)
        except NotesError:
            mine = None  # saving it will say so
        saved = (mine.text, "; ".join(mine.tags)) if mine is not None else ("", "")
        place = (listed.data_id, *key)
        return drafts.without(place) if (text, tags) == saved else drafts.put(place, text, tags)

    def save_note(
        self, listed: Listed, drafts: Drafts, author: str, session: SessionNotes | None, event: gr.EventData
    ) -> tuple[object, Drafts, SessionNotes | None]:
        """Save the note that an event brings; an empty one is taken back. Form, drafts, session."""
        written = notes_form.note_of(event)
        if written is None or open_key(listed) is None:
            return gr.skip(), drafts, session
        key, text, tags = written
        notes, place = self.tab.notes(session), (listed.data_id, *key)
        drafts, said = drafts.put(place, text, tags), ""
        try:
            if not author.strip():
                raise ValueError(NO_AUTHOR)
            self.context.dataset(listed.choice.label).collections[key[0]].query(key[1])
            if text.strip() or tags.strip():
                notes.save_note(listed.data_id, Note(*key, text, tags_of(tags), author, now()))
            else:
                notes.remove_note(listed.data_id, (*key, author.strip()))
            drafts, said = drafts.without(place), SAVED
        except KeyError:
            said = errors.message("This query is not in the data set. Go back to the list.")
        except Exception as error:
            said = errors.why(error)
        return form_of(_read(notes, listed.data_id), drafts, listed, author, said), drafts, session

    def judge(
        self, listed: Listed, drafts: Drafts, author: str, session: SessionNotes | None, event: gr.EventData
    ) -> tuple[object, object, SessionNotes | None]:
        """Judge a document of the open case anew, or take that back. Sheet, form with a line about it, session."""
        key, asked = open_key(listed), sheet.judged_of(event)
        if key is None or asked is None:
            return gr.skip(), gr.skip(), session
        doc, grade = asked
        notes = self.tab.notes(session)
        try:
            if not author.strip():
                raise ValueError(NO_AUTHOR)
            if self.context.dataset(listed.choice.label).pool(listed.choice.task).row_of(*doc) is None:
                raise ValueError("This document is not among those of the task. Open the case again.")
            if grade:
                notes.save_judged(listed.data_id, Judged(*key, *doc, grade, author, now()))
            else:
                notes.remove_judged(listed.data_id, (*key, *doc, author.strip()))
            said = f'<p role="status">{JUDGED_AGAIN if listed.overlay else JUDGED}</p>'
        except Exception as error:
            said = errors.why(error)
        try:
            case, annotations = self.tab.case(listed, session)
        except Exception as error:
            return (
                gr.skip(),
                form_of(_read(notes, listed.data_id), drafts, listed, author, said + errors.why(error)),
                session,
            )
        # The answer must be news even where it is as before: the menu shows what was chosen in the browser.
        return (
            f"{sheet.rendered(case)}<!-- {secrets.token_hex(4)} -->",
            form_of(annotations, drafts, listed, author, said),
            session,
        )


def _read(notes: Notes, data_id: str) -> Annotations:
    """All notes; none where they cannot be read, which was said already."""
    try:
        return notes.read(data_id)
    except NotesError:
        return Annotations()


def open_key(listed: Listed) -> tuple[str, str] | None:
    """The query that is open; None where none is."""
    if listed.choice is None or listed.at is None or not 0 <= listed.at < len(listed.keys):
        return None
    return listed.keys[listed.at]


def _mine(annotations: Annotations, key: tuple[str, str], author: str) -> Note | None:
    return next((note for note in annotations.notes_on(key) if note.author == author.strip()), None)


def form_of(annotations: Annotations, drafts: Drafts, listed: Listed, author: str, said: str = "") -> str:
    """The form of the open case: a draft before what is saved."""
    key = open_key(listed)
    assert key is not None
    draft = drafts.kept.get((listed.data_id, *key))
    if draft is not None:
        return notes_form.rendered(key, *draft, annotations, said or UNSAVED)
    mine = _mine(annotations, key, author)
    text, tags = (mine.text, "; ".join(mine.tags)) if mine is not None else ("", "")
    return notes_form.rendered(key, text, tags, annotations, said)
