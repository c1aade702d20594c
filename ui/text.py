"""Sentences of the page that stand in more than one place."""

from __future__ import annotations

TITLE = "M3Retrieve Explorer"
PURPOSE = "Search medical cases with a picture and words."
WARNING = "Research tool, not for diagnosis."

JUDGEMENTS = {
    "relevant-2": ("●●", "most relevant"),
    "relevant-1": ("●", "relevant"),
    "not-relevant": ("○", "judged not relevant"),
    "unjudged": ("◌", "unjudged"),
    "not-listed": ("◌", "not listed as relevant"),
}
"""Glyph and words of every judgement; colour only helps."""

NOTHING_YET = (
    "Give a picture, words, or both, then press Search. New here? Choose a ready query on the left: its hits are "
    "marked by the data set's judgements."
)
