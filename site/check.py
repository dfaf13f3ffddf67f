"""Crawl the built site: every link leads somewhere, and nothing is fetched from elsewhere."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

HTML = Path(__file__).parents[1] / "build" / "site" / "html"
FETCHED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "video": "src", "link": "href"}


class Page(HTMLParser):
    """The anchors of a page, where it leads, and what a browser fetches for it."""

    def __init__(self, path: Path):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what this element names, and what it leads to."""
        known = dict(attrs)
        self.anchors |= {name for key in ("id", "name") if (name := known.get(key))}
        if tag == "a" and (link := known.get("href")):
            self.links.append(link)
        if (source := known.get(FETCHED.get(tag, ""))) and known.get("rel") not in ("prev", "next", "canonical"):
            self.fetched.append(source)


def faults() -> list[str]:
    """Return a line for everything that is wrong with the site."""
    pages = {path: Page(path) for path in sorted(HTML.rglob("*.html"))}
    if not pages:
        return [f"there are no pages in {HTML}"]
    found = []
    for path, page in pages.items():
        where = path.relative_to(HTML)
        found += [f"{where} fetches {link}" for link in page.fetched if urlsplit(link).netloc]
        for link in (link for link in page.links + page.fetched if not re.match(r"[a-z]+:|//", link)):
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            missing = target in pages and parts.fragment and unquote(parts.fragment) not in pages[target].anchors
            if where.name != "404.html" and (not target.exists() or (missing and parts.fragment != "__top")):
                found.append(f"{where} links to {link}, which is not there")
    for sheet in HTML.rglob("*.css"):
        found += [
            f"{sheet.relative_to(HTML)} fetches {url}"
            for url in re.findall(r"url\(\s*[\"']?(https?:[^)]*)", sheet.read_text())
        ]
    return found


if __name__ == "__main__":
    wrong = faults()
    sys.exit("\n".join(wrong) if wrong else None)
