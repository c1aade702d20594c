"""HTML of hits, strips and data set facts. Everything that comes from data or users is escaped here, and only here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as _escape

from core.records import SearchResult, Strength
from core.search.cases import CaseResult
from core.search.views import Shown
from ui.text import BAND_WORDS, JUDGEMENTS, NOTHING_PASSES, NOTHING_TO_SEARCH, NOTHING_YET


def escape(value: object) -> str:
    """Text for HTML content and attributes. ``$`` and braces are escaped too: ``gr.HTML`` fills templates."""
    text = _escape(str(value), quote=True)
    for sign in "$`{}\\":
        text = text.replace(sign, f"&#{ord(sign)};")
    return text


def empty() -> str:
    """What stands in the place of hits before the first search."""
    return f'<div class="m3-empty"><p>{escape(NOTHING_YET)}</p></div>'


def hits(shown: Sequence[Shown], query_name: str, filtered: bool = False) -> str:
    """The list of cards; pictures in a grid, passages in one column. One button a card opens it."""
    if not shown:
        return f'<div class="m3-empty"><p>{NOTHING_PASSES if filtered else NOTHING_TO_SEARCH}</p></div>'
    kind = "m3-pictures" if any(s.picture or s.problem for s in shown) else "m3-texts"
    label = f"Hits, marked by the judgements of query {query_name}" if query_name else "Hits"
    return f'<ol class="m3-hits {kind}" aria-label="{escape(label)}">{"".join(map(_card, shown))}</ol>'


def _card(s: Shown) -> str:
    facets = " · ".join((s.domain, *s.facets))
    case = f"{escape(s.case)} · " if s.case else ""
    return (
        f'<li class="m3-card">{_picture(s)}<div class="m3-body"><div class="m3-head">'
        f'<span class="m3-rank">{s.rank}</span>{_open(s, "m3-plain", "Open") if _is_text(s) else ""}{_mark(s)}</div>'
        f'{_passage(s)}<div class="m3-facet">{case}{escape(facets)}{_more(s)}</div>{_share(s)}</div></li>'
    )


def _is_text(s: Shown) -> bool:
    return s.picture is None and not s.problem


def _open(s: Shown, kind: str, inside: str) -> str:
    """The button that opens a card; the browser walks these by the arrow keys."""
    what = f"case {s.case}" if s.case else f"document {s.hit.doc_id}"
    label = f"Open hit {s.rank}: {what}, {', '.join((s.domain, *s.facets))}"
    return (
        f'<button type="button" class="m3-open {kind}" data-collection="{escape(s.hit.collection)}" '
        f'data-id="{escape(s.hit.doc_id)}" aria-label="{escape(label)}">{inside}</button>'
    )


def _picture(s: Shown) -> str:
    if s.picture is not None:
        more = f", first of {s.pictures} pictures" if s.pictures > 1 else ""
        alt = f"Hit {s.rank}: picture {s.hit.doc_id}, {', '.join((s.domain, *s.facets))}{more}"
        return _open(s, "m3-picture", f'<img src="{s.picture}" alt="{escape(alt)}" loading="lazy">')
    if s.problem:
        return _open(s, "m3-picture", f"<span>{escape(s.problem)}</span>")
    return ""


def _mark(s: Shown) -> str:
    if s.judgement is None:
        return ""
    glyph, words = JUDGEMENTS[s.judgement]
    good = " good" if s.judgement.startswith("relevant") else ""
    later = f" at rank {s.judged_rank:,}" if s.judged_rank is not None and s.judged_rank != s.hit.rank else ""
    return f'<span class="m3-mark{good}">{glyph} {words}{later}</span>'


def segments(pieces: Iterable[tuple[str, bool]]) -> str:
    """A text whose pieces that are words of the query are marked."""
    return "".join(f"<mark>{escape(text)}</mark>" if mark else escape(text) for text, mark in pieces)


def _passage(s: Shown) -> str:
    title = f"<strong>{escape(s.title)}</strong> " if s.title else ""
    if not s.passage and not title:
        return ""
    before, after = "… " if s.before else "", " …" if s.after else ""
    return f'<p class="m3-passage">{title}{before}{segments(s.passage)}{after}</p>'


def _more(s: Shown) -> str:
    copies = s.hit.copies
    parts = [
        f"+{s.more:,} more of this case" if s.more else "",
        f"{s.near:,} look{'s' if s.near == 1 else ''} alike, folded" if s.near else "",
        f"the same content stands in {copies} more place{'s' if copies > 1 else ''}" if copies else "",
    ]
    return "".join(f" · {part}" for part in parts if part)


def _share(s: Shown) -> str:
    """Score and its two shares in numbers; the bar shows the positive parts on a scale from 0 to 1."""
    hit = s.hit
    bars = "".join(
        f'<i class="{name}" style="width:{max(0.0, share) * 100:.1f}%"></i>'
        for name, share in (("p", hit.image_share), ("w", hit.text_share))
    )
    return (
        f'<div class="m3-share"><span class="m3-bar" aria-hidden="true">{bars}</span>'
        f"<span>score {_number(hit.score)} = picture {_number(hit.image_share)} + words {_number(hit.text_share)}"
        "</span></div>"
    )


def _number(value: float) -> str:
    """Three decimals with a real minus sign; never "−0.000"."""
    text = f"{value:.3f}"
    return "0.000" if text == "-0.000" else text.replace("-", "−")


def strip(
    found: CaseResult, data: str, model: str, task: str, query_name: str, seconds: float | None, what: str = ""
) -> str:
    """What was searched, with what, how surely and how fast. ``what`` says which question it was where it is not the
    one in the form; without ``seconds`` the hits were stored."""
    result = found.result
    index = "exact search" if result.recall_at_10 is None else f"HNSW · recall@10 {result.recall_at_10:.3f}"
    weight = f"picture {result.weight:.2f} · words {1 - result.weight:.2f}"
    parts = [
        f"<strong>{result.searched:,}</strong> documents of {escape(task)} in {escape(data)}",
        escape(model),
        index,
        weight,
        "from stored vectors" if seconds is None else f"{seconds:.2f} s",
    ]
    lines = [f"<p>{escape(what)}</p>"] if what else []
    lines += [_strength(result.strength)] if result.strength else []
    lines.append(f"<p>{' · '.join(parts)}</p>")
    if query_name:
        lines.append(f"<p>{escape(_marked_by(result, query_name))}</p>")
    lines += [f"<p>{escape(note)}</p>" for note in result.notes]
    return f'<div class="m3-strip" role="status">{"".join(lines)}</div>'


def _strength(strength: Strength) -> str:
    """How good the best match is, in words; the reason for what is missing stands smaller behind it."""
    band = f"<strong>{BAND_WORDS[strength.band]}</strong> · " if strength.band else ""
    words = strength.sentence[:1].upper() + strength.sentence[1:]
    why = strength.reason if strength.calibrated else ""
    reason = f' <span class="m3-reason">({escape(why)})</span>' if why else ""
    return f'<p class="m3-strength">{band}{escape(words)}{reason}</p>'


def _marked_by(result: SearchResult, query_name: str) -> str:
    marked = f"Marked by the judgements of query {query_name}"
    if result.best_relevant is None:
        return f"{marked}; no relevant document among those searched"
    return f"{marked}; best relevant document at rank {result.best_relevant:,}, {result.relevant:,} relevant here"
