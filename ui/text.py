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

KINDS = {
    "near miss": ("◔", "Near miss"),
    "deep miss": ("◑", "Deep miss"),
    "not retrieved": ("∅", "Not retrieved"),
    "wrong domain": ("≠", "Wrong domain"),
    "wrong specialty": ("≢", "Wrong specialty"),
    "wrong modality": ("≉", "Wrong modality"),
    "picture hurts": ("◩", "Picture hurts"),
    "words hurt": ("¶", "Words hurt"),
    "text truncated": ("⊣", "Text truncated"),
    "picture missing": ("□", "Picture missing"),
    "picture unreadable": ("⊠", "Picture unreadable"),
    "picture blank": ("▬", "Picture blank"),
    "template text": ("⟨⟩", "Template text"),
    "hub document": ("⁂", "Hub document"),
    "tie": ("=", "Tie"),
    "probably the judgements": ("?", "Probably the judgements"),
    "words decide": ("”", "Words decide"),
    "picture ignored": ("▫", "Picture ignored"),
    "both needed": ("⊕", "Both needed"),
    "neither suffices": ("⊖", "Neither suffices"),
}
"""Glyph and words of every kind of failure; the sentences stand with the kinds in ``core.analyze.failures``."""

REJUDGED = {
    "": "Judge anew",
    "2": "most relevant",
    "1": "relevant",
    "0": "not relevant",
    "unsure": "unsure",
}
"""What a user may say of a document anew, and the words of the menu; "" leaves it as stored."""
