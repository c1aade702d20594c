"""HTML of hits, strips and data set facts. Everything that comes from data or users is escaped here, and only here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as _escape
from typing import Any

from core.records import SearchResult, Strength
from core.search.views import Shown
from ui.text import BAND_WORDS, JUDGEMENTS, NOTHING_PASSES, NOTHING_TO_SEARCH, NOTHING_YET

PASSAGE = 420
"""Characters of a passage that a card shows before "Whole text"."""


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
    """The list of hits; pictures in a grid, passages in one column."""
    if not shown:
        return f'<div class="m3-empty"><p>{NOTHING_PASSES if filtered else NOTHING_TO_SEARCH}</p></div>'
    kind = "m3-pictures" if any(s.picture or s.problem for s in shown) else "m3-texts"
    label = f"Hits, marked by the judgements of query {query_name}" if query_name else "Hits"
    return f'<ol class="m3-hits {kind}" aria-label="{escape(label)}">{"".join(map(_card, shown))}</ol>'


def _card(s: Shown) -> str:
    hit = s.hit
    head = f'<span class="m3-rank">{hit.rank}</span>{_mark(s.judgement)}'
    facets = " · ".join((s.domain, *s.facets))
    return (
        f'<li class="m3-card" data-doc="{escape(hit.doc_id)}" data-collection="{escape(hit.collection)}">'
        f'{_picture(s)}<div class="m3-body"><div class="m3-head">{head}</div>{_passage(s)}'
        f'<div class="m3-facet">{escape(facets)}{_copies(s)}</div>{_share(s)}</div></li>'
    )


def _picture(s: Shown) -> str:
    if s.picture is not None:
        more = f", first of {s.pictures} pictures" if s.pictures > 1 else ""
        alt = f"Hit {s.hit.rank}: picture {s.hit.doc_id}, {', '.join((s.domain, *s.facets))}{more}"
        return f'<div class="m3-picture"><img src="{s.picture}" alt="{escape(alt)}" loading="lazy"></div>'
    if s.problem:
        return f'<div class="m3-picture"><p>{escape(s.problem)}</p></div>'
    return ""


def _mark(judgement: str | None) -> str:
    if judgement is None:
        return ""
    glyph, words = JUDGEMENTS[judgement]
    good = " good" if judgement.startswith("relevant") else ""
    return f'<span class="m3-mark{good}">{glyph} {words}</span>'


def _passage(s: Shown) -> str:
    text = s.text.strip()
    title = f"<strong>{escape(s.title)}</strong> " if s.title else ""
    if not text and not title:
        return ""
    if len(text) <= PASSAGE:
        return f'<p class="m3-passage">{title}{escape(text)}</p>'
    cut = text.rfind(" ", 0, PASSAGE)
    cut = cut if cut > PASSAGE // 2 else PASSAGE
    return (
        f'<p class="m3-passage">{title}{escape(text[:cut])} …</p>'
        f'<details><summary>Whole text</summary><p class="m3-passage">{escape(text)}</p></details>'
    )


def _copies(s: Shown) -> str:
    n = s.hit.copies
    return f" · the same content stands in {n} more place{'s' if n > 1 else ''}" if n else ""


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


def strip(result: SearchResult, data: str, model: str, task: str, query_name: str, seconds: float) -> str:
    """What was searched, with what, how surely and how fast."""
    index = "exact search" if result.recall_at_10 is None else f"HNSW · recall@10 {result.recall_at_10:.3f}"
    weight = f"picture {result.weight:.2f} · words {1 - result.weight:.2f}"
    parts = [
        f"<strong>{result.searched:,}</strong> documents of {escape(task)} in {escape(data)}",
        escape(model),
        index,
        weight,
        f"{seconds:.2f} s",
    ]
    lines = [_strength(result.strength)] if result.strength else []
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


def facts(name: str, licence: str, data_id: str, rows: Sequence[dict[str, Any]], faults: int, synthetic: bool) -> str:
    """Counts, licence and health of a data set, with one table row a collection."""
    queries, documents = (sum(r[k] for r in rows) for k in ("queries", "documents"))
    health = f"{faults} fault{'s' if faults != 1 else ''} while reading" if faults else "read without faults"
    made = " · synthetic, not from patients" if synthetic else ""
    head = (
        f"<strong>{escape(name)}</strong>{made} · {len(rows)} collections · {queries:,} queries · "
        f"{documents:,} documents · {health} · licence: {escape(licence)}"
    )
    columns = ("collection", "queries", "documents", "judgements", "judgement_type")
    cells = ([f"{r[c]:,}" if isinstance(r[c], int) else r[c] for c in columns] for r in rows)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in cells)
    heads = "".join(
        f'<th scope="col">{h}</th>' for h in ("Collection", "Queries", "Documents", "Judgements", "Kind of judgements")
    )
    table = (
        f'<div class="m3-scroll" tabindex="0" role="region" aria-label="Collections"><table>'
        f"<caption>data_id {escape(data_id)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )
    return f'<div class="m3-facts">{head}<details><summary>Collections</summary>{table}</details></div>'


def health(report: dict[str, Any]) -> str:
    """What a full check found, by kind, with the first places of each fault."""
    totals = report["totals"]
    repeated, template = totals["repeated_captions"], totals["template_texts"]
    lines = [
        f"{totals['pictures']:,} distinct pictures opened; {len(report['faults']):,} faults, "
        f"{len(report['notes']):,} notes.",
        f"{repeated['lines']:,} query lines have a caption that another query shares "
        f"({repeated['distinct']:,} captions); {template['lines']:,} lines are template text that nobody filled in "
        f"({template['distinct']:,} distinct).",
    ]
    items = "".join(
        f"<li>{escape(f['kind'])}: {escape(f['file'])}, line {f['line']}: {escape(f['detail'])}</li>"
        for f in report["faults"][:20]
    )
    more = len(report["faults"]) - 20
    tail = f"<p>and {more:,} more; <code>python -m core check</code> lists all.</p>" if more > 0 else ""
    body = "".join(f"<p>{line}</p>" for line in lines)
    return f'<div class="m3-facts">{body}{f"<ul>{items}</ul>" if items else ""}{tail}</div>'
