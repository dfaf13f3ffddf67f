"""The tools around the code: what `make` lists, and which browser tests a page."""

import re
import subprocess
from pathlib import Path

import browser

PROJECT = Path(__file__).parents[1]


def test_bare_make_lists_every_target():
    targets = re.search(r"^\.PHONY: (.*)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert targets
    listed = subprocess.run(["make", "-s"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^make (\S+) +\S", listed, re.MULTILINE) == targets[1].split()


def test_installed_browser_is_found_or_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "APPLICATIONS", ())
    assert browser.find_browser() is None
    chrome = tmp_path / "google-chrome-stable"
    chrome.write_text("#!/bin/sh\n")
    chrome.chmod(0o755)
    assert browser.find_browser() == str(chrome)
    assert re.fullmatch(r"[^.]+ install Chromium or Chrome \([^.]+\)\.", browser.ADVICE)


def test_version_stands_in_the_changelog_and_the_citation():
    version = re.search(r'^version = "(.*)"$', (PROJECT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    assert re.findall(r"^## (\S+)", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == version[1]
    assert f"\nversion: {version[1]}\n" in (PROJECT / "CITATION.cff").read_text()


def test_version_control_ignores_no_source():
    command = ["git", "ls-files", "--others", "--ignored", "--exclude-standard", "src", "tests"]
    ignored = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [path for path in ignored if path.endswith(".py")] == []
