"""What a core call reports, on the page: the step, how far it is, and at which pace."""

from __future__ import annotations

import gradio as gr

from core.embed.pipeline import Pace


def pace_of(progress: gr.Progress | None) -> Pace:
    """A progress callback of core that shows on the page; it shows nothing where there is no ``progress``."""

    def report(what: str, done: int, total: int) -> None:
        if progress is not None:
            progress((done, total or None), desc=what)

    return Pace(report)
