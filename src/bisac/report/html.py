"""How a page is put together that needs nothing beside it: its style, plotly.js and the charts' data are inside."""

import base64
import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from bisac.report.charts import Chart


def fill(template: str, parts: Mapping[str, str], charts: Sequence[Chart]) -> str:
    """Return a page with its parts, which are HTML, and what its script draws; the template begins after the header."""
    folder = files("bisac.report")
    page, plotly = folder.joinpath("head.html").read_text() + folder.joinpath(template).read_text(), _plotly()
    shared = {
        "style": folder.joinpath("style.css").read_text(),
        "plotly": plotly,
        "charts": _json([dataclasses.asdict(chart) for chart in charts]),
        "policy": _policy(re.findall(r"(?s)<script>(.*?)</script>", page.replace("{{plotly}}", plotly))),
    }
    known = {**parts, **shared}
    return re.sub(r"\{\{(\w+)\}\}", lambda place: known[place[1]], page)


def cards(shown: Iterable[Chart], wide: tuple[str, ...] = ()) -> str:
    """Return the places that the page's script draws charts into."""
    return "".join(
        f'<section class="card{" wide" if chart.name in wide else ""}"><h3>{escape(chart.title)}</h3>'
        f'<p class="note">{escape(chart.note)}</p><div class="chart" id="{chart.name}"></div></section>'
        for chart in shown
    )


def _policy(scripts: Iterable[str]) -> str:
    """Return a content-security policy under which these scripts run and no other, and nothing is fetched or sent."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        f"form-action 'none'"
    )


def _plotly() -> str:
    from plotly.offline import get_plotlyjs  # slow to import, and wanted only here

    return get_plotlyjs().replace("</script", "<\\/script")


def _json(value: Any) -> str:
    """Return JSON in which nothing looks like the end of the script element that it stands in."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
