"""Theme, style sheet and launch options of the page: system fonts, one accent colour, nothing from other hosts."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

ACCENT = "#1d4ed8"


def theme() -> gr.themes.Base:
    """The base theme with contrast that passes axe in both modes."""
    return gr.themes.Base(
        primary_hue="blue",
        neutral_hue="slate",
        font=["system-ui", "sans-serif"],
        font_mono=["ui-monospace", "monospace"],
    ).set(
        color_accent=ACCENT,
        button_primary_background_fill=ACCENT,
        button_primary_background_fill_dark=ACCENT,
        button_primary_text_color="#ffffff",
        button_primary_text_color_dark="#ffffff",
        body_text_color_subdued="#475569",
        body_text_color_subdued_dark="#cbd5e1",
        input_placeholder_color="#64748b",
        input_placeholder_color_dark="#94a3b8",
        block_label_text_color="#334155",
        block_label_text_color_dark="#cbd5e1",
    )


SHEETS = (
    *("style.css", "viewer.css", "search/parts.css", "search/search.css"),
    *("failures/sheet.css", "failures/failures.css", "compare/compare.css"),
)
STYLE = f"<style>{''.join(Path(__file__).parent.joinpath(name).read_text() for name in SHEETS)}</style>"
