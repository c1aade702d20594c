"""A comparison as one file: HTML with its charts, tables and plotly's code, that asks nobody for anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ui import charts
from ui.cards import escape
from ui.text import TITLE, WARNING

_STYLE = """body{font:15px/1.45 system-ui,sans-serif;color:#1e293b;background:#fff;max-width:1100px;margin:24px auto;
 padding:0 16px}
h1{font-size:22px} h2{font-size:18px;margin:32px 0 8px} p{margin:4px 0;max-width:90ch;overflow-wrap:anywhere}
.m3-scroll{overflow-x:auto;margin:12px 0} table{border-collapse:collapse;width:100%;font-size:14px;
 font-variant-numeric:tabular-nums} tr{break-inside:avoid} caption{text-align:left;color:#475569;padding-bottom:4px}
th,td{padding:4px 12px 4px 0;text-align:right;border-bottom:1px solid #cbd5e1;vertical-align:baseline;font-weight:400}
th{font-weight:600} :is(th,td):first-child,.m3-left{text-align:left} :is(th,td) span{display:block;font-size:12px;
 color:#475569;font-weight:400}
td .m3-verdict{display:inline;font-size:14px;color:inherit} .m3-strength{font-size:17px}
.m3-method{font-size:13px;color:#475569} .m3-message{border:1px solid #cbd5e1;padding:8px 12px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;font-size:13px} dl div{display:contents}
dt{font-weight:600} dd{margin:0;overflow-wrap:anywhere} figure{margin:12px 0;break-inside:avoid}
.m3-two{display:grid;grid-template-columns:repeat(auto-fit,minmax(320px,1fr));gap:0 32px}
@media print{body{margin:0;max-width:none;font-size:11px}}"""

_SCRIPT = """for (const script of document.querySelectorAll('script[data-figure]')) {
  const figure = JSON.parse(script.textContent), layout = figure.layout;
  const narrow = innerWidth < 600 ? layout.meta?.narrow : null;
  const merge = (a, b) => { const out = {...a}; for (const [k, v] of Object.entries(b || {}))
    out[k] = v && typeof v === 'object' && !Array.isArray(v) ? merge(out[k], v) : v; return out; };
  const data = figure.data.map((trace, i) => merge(trace, narrow?.traces[i]));
  const plot = document.createElement('figure'); script.after(plot);
  Plotly.newPlot(plot, data, merge(layout, narrow?.layout), {displaylogo: false, responsive: true,
    modeBarButtons: [['toImage']], toImageButtonOptions: {scale: 2}}); }"""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with figures (`ui.charts.to_json`, "" for none) and HTML that is escaped already."""

    heading: str
    figures: Sequence[str]
    html: str


def report_file(heading: str, top: str, sections: Sequence[Section], facts: Mapping[str, str]) -> bytes:
    """The file as UTF-8. ``top`` is HTML; ``facts`` say what made the figures, name by name."""
    body = "".join(
        f"<h2>{escape(section.heading)}</h2>{''.join(map(_figure, filter(None, section.figures)))}{section.html}"
        for section in sections
    )
    made = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    code = charts.code().decode("utf-8").replace("</script", "<\\/script")
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(heading)}</title><style>{_STYLE}</style></head><body><h1>{escape(heading)}</h1>"
        f"<p>{TITLE}. <strong>{WARNING}</strong></p>{top}{body}<h2>Where this comes from</h2><dl>{made}</dl>"
        f"<script>{code}</script><script>{_SCRIPT}</script></body></html>\n"
    )
    return page.encode("utf-8", "replace")


def _figure(figure: str) -> str:
    """``figure`` holds no "<", see `ui.charts.to_json`, so that nothing in it ends the script."""
    return f'<script type="application/json" data-figure>{figure}</script>'
