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

BAND_WORDS = {
    "strong": "●●● Strong match",
    "fair": "●●○ Fair match",
    "weak": "●○○ Weak: probably no good match",
}
"""Glyph and words of every band of match strength."""

NOTHING_YET = (
    "Give a picture, words, or both, then press Search. New here? Choose a ready query: its hits are marked by "
    "the data set's judgements."
)

NOTHING_PASSES = "No document passes these filters. Clear a domain and search again."
NOTHING_TO_SEARCH = (
    "No document of this task could be encoded. Press Check every line and picture to see why, then mend the data set."
)
