"""Lay out what the documentation site is built from: the repository's own pages, and every file that they link to.

The site has the repository's tree, so that a relative link means the same in both. Files are linked, not copied.
"""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "site" / "pages"
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
ALONE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "site/pages.css", "site/iframe-worker.js")


def pages() -> list[Path]:
    """Return the Markdown files that users read."""
    trees = (path for folder in ("docs", "results", "examples") for path in sorted((ROOT / folder).rglob("*.md")))
    return [*(ROOT / name for name in ALONE if name.endswith(".md")), *trees]


def targets(page: Path) -> list[tuple[str, Path]]:
    """Return the links of a page to files of ours: as they stand, and the file that each means."""
    text = re.sub(r"^```.*?^```$|^(?:    |\t)[^\n]*$|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    links = (link for link in LINK.findall(text) if not re.match(r"[a-z]+:|#", link))
    return [(link, (page.parent / link.partition("#")[0]).resolve()) for link in links]


def stage() -> None:
    """Lay the pages out anew."""
    shutil.rmtree(PAGES, ignore_errors=True)
    wanted = {ROOT / name for name in ALONE} | set(pages())
    for page in pages():
        for link, file in targets(page):
            if not file.is_file() or not file.is_relative_to(ROOT):
                sys.exit(f"{page.relative_to(ROOT)} links to {link}, which is no file of this repository.")
            wanted.add(file)
    for file in sorted(wanted):
        place = PAGES / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(file)


if __name__ == "__main__":
    stage()
