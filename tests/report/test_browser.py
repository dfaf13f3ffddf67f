"""The report's page in a real browser: that it loads, draws every chart, and answers to clicks."""

import base64
import hashlib
import html
import json
import os
import re
import subprocess

import pytest
from browser import ADVICE, find_browser
from made_up_sweep import make_up, misname

from bisac.plotting import statistics
from bisac.report.analyse import analyse
from bisac.report.data import read_sweep
from bisac.report.page import render_page

pytestmark = pytest.mark.browser

EVIL = """</script><script>window.hurt=1</script><img src=x onerror="window.hurt=1">%{x} &amp; <b>bold</b>"""
"""A name that is a script wherever it is not escaped."""

USE = """
window.addEventListener("load", async () => {
  while (document.body.dataset.ready !== "yes") await new Promise(done => setTimeout(done, 20));
  const chart = name => document.getElementById(name);
  const seen = () => chart("curve-0").data.filter(t => t.meta === "bisac").map(t => t.visible !== false);
  const axis = () => [chart("curve-0").layout.xaxis.title.text, Math.max(...chart("curve-0").data[0].x)];
  const found = {
    charts: charts.map(c => [c.name, chart(c.name).querySelectorAll("svg.main-svg path, svg.main-svg text").length]),
    before: seen(), steps: axis(), hurt: window.hurt ?? null,
    names: ["aggregates", "cost"].map(n => [...chart(n).querySelectorAll("text")].map(t => t.textContent)),
  };
  document.querySelector('.chip[data-contestant="bisac"]').click();
  document.getElementById("by-time").click();
  await new Promise(done => setTimeout(done, 50));
  found.hidden = seen();
  found.rows = document.querySelectorAll('tr.hidden[data-contestant="bisac"]').length;
  found.time = axis();
  document.querySelector('.chip[data-contestant="bisac"]').click();
  document.getElementById("by-steps").click();
  await new Promise(done => setTimeout(done, 50));
  found.after = seen();
  found.again = axis();
  const told = document.body.appendChild(document.createElement("div"));
  told.id = "found";
  told.textContent = JSON.stringify(found);
});
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The analysis and the page of a made-up sweep."""
    algos, tasks, folder = (
        ("sac", "bisac", "forward-sac"),
        ("Hopper-v5", "Walker2d-v5"),
        tmp_path_factory.mktemp("report"),
    )
    sweep = make_up(folder / "sweep", algos, tasks, 5, 20, {"bisac": 2.0}, [("Hopper-v5", "bisac", 3)])
    misname(sweep, "Walker2d-v5", "forward-sac", EVIL, EVIL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "REPS", 50)
        analysis = analyse(read_sweep(sweep), None)
    (folder / "page.html").write_text(render_page(analysis, EVIL))
    return analysis, folder / "page.html"


@pytest.fixture(scope="module")
def browsed(report, tmp_path_factory):
    """What a browser says of the page on its console, and what the page has become after a few clicks."""
    browser = find_browser()
    assert browser, ADVICE
    used = tmp_path_factory.mktemp("browser")
    digest = base64.b64encode(hashlib.sha256(USE.encode()).digest()).decode()  # the page runs its own scripts alone
    page = report[1].read_text().replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    (used / "page.html").write_text(page.replace("</body>", f"<script>{USE}</script></body>"))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update", f"--user-data-dir={used / 'profile'}",
             "--enable-logging=stderr", "--virtual-time-budget=10000", "--window-size=1300,2000",
             "--dump-dom"]  # fmt: skip
    command = [browser, *flags, f"file://{used / 'page.html'}"]
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<div id="found">(.*?)</div>', result.stdout)
    assert found, result.stderr
    return re.findall(r"CONSOLE[^\n]*", result.stderr), json.loads(html.unescape(found[1]))


def test_page_loads_without_a_word_on_the_console(browsed):
    assert browsed[0] == []


def test_names_that_are_scripts_are_shown_to_the_letter_and_run_nowhere(browsed):
    assert browsed[1]["hurt"] is None
    for texts in browsed[1]["names"]:  # a contestant's and a task's
        assert EVIL in texts


def test_every_chart_is_drawn(browsed):
    drawn = dict(browsed[1]["charts"])
    assert set(drawn) == {"curve-0", "curve-1", "aggregates", "improvement", "profiles", "efficiency", "cost"}
    assert all(count > 20 for count in drawn.values()), drawn


def test_contestant_is_hidden_everywhere_and_comes_back(browsed):
    found = browsed[1]
    assert set(found["before"]) == set(found["after"]) == {True}
    assert set(found["hidden"]) == {False}
    assert found["rows"] == 4  # a verdict, two tasks, and all of them


def test_axis_switches_between_steps_and_time(browsed, report):
    found = browsed[1]
    assert found["steps"] == found["again"] == ["environment steps", 20_000]
    assert found["time"][0].startswith("hours")
    assert found["time"][1] == pytest.approx(max(report[0].curves[0].seconds) / 3600)
