"""Reports: what they say of made-up sweeps, and the page in a real browser."""

import csv
import dataclasses
import html
import json
import os
import re
import shutil
import subprocess

import numpy as np
import pytest
from browser import ADVICE, find_browser
from made_up_sweep import make_up

from bisac.cli import run
from bisac.errors import BisacError
from bisac.report import figures, statistics
from bisac.report.analysis import analyse
from bisac.report.data import read_sweep
from bisac.report.look import looks
from bisac.report.page import render_page
from bisac.report.tables import to_latex
from bisac.report.write import write_report
from bisac.sweeps.plan import parse_contestant

GAINS = {"bisac": 2.0, "forward-sac": 1.0}
UNFINISHED = [("Hopper-v5", "bisac", 3)]


@pytest.fixture(scope="module", autouse=True)
def few_samples():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "REPS", 50)
        yield


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    algos = ("sac", "bisac", "forward-sac", "bisac:epsilon=3")
    return make_up(tmp_path_factory.mktemp("sweep"), algos, ("Hopper-v5", "Walker2d-v5"), 5, 20, GAINS, UNFINISHED)


@pytest.fixture(scope="module")
def report(sweep, tmp_path_factory):
    page = tmp_path_factory.mktemp("report") / "page.html"
    analysis, paths = write_report(sweep, page)
    return analysis, page, paths


def test_numbers_say_what_was_made_up(report):
    analysis, *_ = report
    assert analysis.reference == "sac"
    assert analysis.aggregated == ["Hopper-v5", "Walker2d-v5"]
    by_name = {aggregate.contestant: aggregate for aggregate in analysis.aggregates}
    assert by_name["sac"].mean.value == pytest.approx(1.0)  # by definition of the scale
    assert by_name["bisac"].difference.establishes(0.0)
    assert by_name["bisac"].improvement.value > 0.95
    assert not by_name["forward-sac"].difference.establishes(0.0)
    assert [scale.zero for scale in analysis.scales] == [20.0, 20.0]
    result = analysis.result("Walker2d-v5", "bisac")
    assert max(result.reached) < 20_000
    # Made up as 1.7 times the cost of sac.
    ratio = result.median_seconds / analysis.result("Walker2d-v5", "sac").median_seconds
    assert ratio == pytest.approx(1.7, rel=0.15)


def test_final_scores_are_means_of_the_last_tenth(report, sweep):
    analysis, *_ = report
    rows = table(sweep / "Hopper-v5/sac/seed2/progress.csv")
    expected = np.mean([float(row["eval_return"]) for row in rows[-2:]])
    assert analysis.result("Hopper-v5", "sac").scores[2] == pytest.approx(expected)


def test_incomplete_runs_count_nowhere_and_are_named(report):
    analysis, page, _ = report
    assert analysis.result("Hopper-v5", "bisac").seeds == 4
    assert next(a for a in analysis.aggregates if a.contestant == "bisac").seeds == 4
    text = plain(page.read_text())
    assert "1 of 40 runs are incomplete" in text
    assert "Hopper-v5, Bidirectional SAC, seed 3 (10,000 steps)" in text


def test_runs_that_have_not_begun_are_counted(tmp_path):
    unfinished = [("Hopper-v5", "sac", 0)]
    sweep = make_up(tmp_path, ("sac",), ("Hopper-v5",), seeds=4, points=10, unfinished=unfinished)
    for seed in (2, 3):
        shutil.rmtree(sweep / "Hopper-v5/sac" / f"seed{seed}")
    text = plain(render_page(analyse(read_sweep(sweep), None), "begun"))
    assert "3 of 4 runs are incomplete" in text
    assert "Hopper-v5, SAC, seed 0 (5,000 steps); 2 not evaluated yet." in text


def test_tables(report):
    _, page, paths = report
    assert {path.name for path in paths} == {
        "page.html",
        *(f"page-{name}.{kind}" for name in ("curves", "aggregates", "improvement", "profiles", "efficiency", "cost")
          for kind in ("png", "pdf")),
        *(f"page-{name}" for name in ("scores.csv", "aggregates.csv", "runs.csv", "scores.tex")),
    }  # fmt: skip
    scores = table(page.with_name("page-scores.csv"))
    assert len(scores) == 8
    bisac = next(row for row in scores if (row["task"], row["contestant"]) == ("Walker2d-v5", "bisac"))
    assert bisac["difference_established"] == "True"
    assert float(bisac["score_iqm_low"]) < float(bisac["score_iqm"]) < float(bisac["score_iqm_high"])
    runs = table(page.with_name("page-runs.csv"))
    assert [row["complete"] for row in runs].count("False") == 1
    latex = page.with_name("page-scores.tex").read_text()
    assert re.search(r"Bidirectional SAC & \\textbf\{\d+\.\d\} \{\\scriptsize \[\d+\.\d, \d+\.\d\]\} & ", latex)
    assert latex.count(r"\\") == 5
    assert page.with_name("page-curves.pdf").read_bytes().startswith(b"%PDF")


def test_page_tells_how_it_was_made(report):
    text = plain(report[1].read_text())
    for expected in ("hidden 64 64", "--algo bisac epsilon=3", "numpy " + np.__version__, "5 seeds", "0, 1, 2, 3, 4"):
        assert expected in text
    assert not re.search("env arg|num envs", text)  # nothing was said of them


def test_every_cell_of_the_table_says_what_is_established(report):
    """Made up: bisac twice as good as sac, the others alike."""
    rows = re.findall(r'<tr data-contestant="([^"]+)">(.*?)</tr>', report[1].read_text())
    verdicts = {name: set() for name in report[0].names}
    for name, cells in rows:
        verdicts[name] |= set(re.findall(r">(established|not established|reference)<", cells))
    assert verdicts == {
        "sac": {"reference"},
        "bisac": {"established"},
        "forward-sac": {"not established"},
        "bisac-epsilon=3": {"not established"},
    }


def test_presets_are_listed(tmp_path):
    sweep = make_up(tmp_path, ("sac", "ppo"), ("Swimmer-v5", "BipedalWalker-v3"), seeds=1, points=4)
    text = plain(render_page(analyse(read_sweep(sweep), None), "presets"))
    assert "Swimmer-v5: gamma 0.999; BipedalWalker-v3: rollout 16384, minibatches 256, clip 0.18 (PPO)" in text


def test_contestant_without_a_reference_or_a_task_is_told(tmp_path):
    sweep = make_up(tmp_path, ("sac", "bisac", "ppo"), ("Hopper-v5", "Walker2d-v5"), seeds=4, points=10)
    for folder in ("Hopper-v5/sac", "Walker2d-v5/ppo"):
        shutil.rmtree(sweep / folder)
    page = render_page(analyse(read_sweep(sweep), None), "gaps")
    [hopper] = re.findall(r'<tr data-contestant="bisac"><td>Hopper-v5</td>(.*?)</tr>', page)
    assert "no run of SAC to compare with" in hopper
    assert plain(page).count("no complete run of SAC") == 2  # of bisac and ppo, on Hopper
    assert plain(page).count("no complete run") == 3 + 1  # and of ppo on Walker2d; and the warning
    assert "Not in what is over all tasks: PPO. No seed of theirs is complete on every one of Walker2d-v5." in plain(
        page
    )


def test_run_counts_as_cut_short_where_an_evaluation_is_no_number(tmp_path):
    sweep = make_up(tmp_path, ("sac", "bisac"), ("Hopper-v5",), seeds=4, points=10)
    path = sweep / "Hopper-v5/bisac/seed1/progress.csv"
    lines = path.read_text().splitlines(keepends=True)
    lines[4] = "4000,1.0,nan\n"
    path.write_text("".join(lines))
    analysis = analyse(read_sweep(sweep), None)
    assert analysis.result("Hopper-v5", "bisac").seeds == 3
    assert "Hopper-v5, Bidirectional SAC, seed 1 (3,000 steps)" in plain(render_page(analysis, "nan"))


def test_runs_longer_than_planned_are_told(tmp_path):
    sweep = make_up(tmp_path, ("sac", "ppo"), ("Hopper-v5",), seeds=1, points=10)
    with (sweep / "Hopper-v5/ppo/seed0/progress.csv").open("a") as progress:
        progress.write("16384,9.0,1.0\n")
    assert "More steps than planned: PPO 16,384." in plain(render_page(analyse(read_sweep(sweep), None), "long"))


def table(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def plain(page):
    """A page's words, without its scripts."""
    return html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"(?s)<(script|style).*?</\1>", "", page)))


def test_one_seed_is_drawn_without_a_band_and_establishes_nothing(tmp_path):
    sweep = make_up(tmp_path, ("sac", "bisac"), ("Hopper-v5",), seeds=1, points=10, gains=GAINS)
    analysis = analyse(read_sweep(sweep), None)
    assert all(curve.band.interval is None for curve in analysis.curves)
    assert not any(a.difference.establishes(0.0) for a in analysis.aggregates if a.difference)
    page = render_page(analysis, "one seed")
    assert "Fewer than 4 seeds in places" in plain(page)
    assert "[no interval]" in plain(page)
    assert '"fill"' not in re.search(r'<script id="charts" type="application/json">(.*?)</script>', page)[1]
    assert "(one seed)" in to_latex(analysis)


def test_task_on_which_the_reference_learned_nothing_is_left_out(tmp_path):
    sweep = make_up(tmp_path, ("sac", "bisac"), ("Hopper-v5",), seeds=4, points=10, gains={"sac": 0.0})
    analysis = analyse(read_sweep(sweep), None)
    assert analysis.aggregates == []
    assert analysis.aggregated == []
    assert "Left out of what is over all tasks: Hopper-v5" in plain(render_page(analysis, "nothing learned"))


@pytest.mark.parametrize(
    ("gained", "usable"),
    [((0.0, 300.0, 600.0, 900.0), True), ((0.0, 100.0, 200.0, 900.0), False)],  # mean 450, error 194; 300 and 203
)
def test_reference_must_have_gained_more_than_twice_its_error(gained, usable, tmp_path):
    data = read_sweep(make_up(tmp_path, ("sac",), ("Hopper-v5",), seeds=4, points=10))
    curves = [
        dataclasses.replace(curve, returns=np.full_like(curve.returns, 20.0 + gain))
        for curve, gain in zip(data.curves, gained, strict=True)
    ]
    [scale] = analyse(dataclasses.replace(data, curves=curves), None).scales
    assert scale.one == pytest.approx(20.0 + np.mean(gained))
    assert scale.usable is usable


def test_other_reference(sweep):
    assert analyse(read_sweep(sweep), "bisac").reference == "bisac"
    with pytest.raises(BisacError, match="the sweep has no contestant 'ppo' to compare with; it has sac, bisac"):
        analyse(read_sweep(sweep), "ppo")


@pytest.mark.parametrize("tasks", [("Hopper-v5",), ("Hopper-v5", "Walker2d-v5")])
def test_everything_in_a_figure_lies_within_it(tasks, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "rendered", lambda figure: drawn.append(figure) or {})
    figures.draw_figures(analyse(read_sweep(make_up(tmp_path / "s", tasks=tasks, seeds=2, points=10)), None))
    assert len(drawn) == 6
    for figure in drawn:
        figure.draw_without_rendering()
        whole, inside = figure.bbox, figure.get_tightbbox().transformed(figure.dpi_scale_trans)
        assert inside.x0 >= 0
        assert inside.y0 >= 0
        assert inside.x1 <= whole.x1
        assert inside.y1 <= whole.y1


def test_nothing_to_report_is_told(tmp_path, capsys):
    assert run(["report", str(tmp_path)]) == 2
    assert "is not a sweep's folder: it has no sweep.json" in capsys.readouterr().err
    sweep = make_up(tmp_path / "sweep", ("sac",), ("Hopper-v5",), seeds=1)
    shutil.rmtree(sweep / "Hopper-v5")
    assert run(["report", str(sweep)]) == 2
    assert "no run in" in capsys.readouterr().err


def test_unknown_variants_have_looks_of_their_own():
    texts = ["sac", "bisac:refinement=correction", "bisac:refinement=correction,epsilon=1", "sac:critic_lr=1e-5",
             "sac:entropy_target=-3,critic=vdn-a"]  # fmt: skip
    found = looks([parse_contestant(text) for text in texts])
    assert [look.label for look in found.values()] == [
        "SAC",
        "Bidirectional SAC, correction",
        "Bidirectional SAC, correction, epsilon=1",
        "SAC, critic_lr=1e-05",
        "SAC, entropy_target=-3, vdn-a",
    ]
    assert len({look.colour for look in found.values()}) == 5
    many = looks([parse_contestant(f"bisac:epsilon={value}") for value in range(30)])
    assert len({(look.colour, look.line) for look in many.values()}) == 30


# In a browser.

USE = """
<script>
window.addEventListener("load", async () => {
  while (document.body.dataset.ready !== "yes") await new Promise(done => setTimeout(done, 20));
  const chart = name => document.getElementById(name);
  const seen = () => chart("curve-0").data.filter(t => t.meta === "bisac").map(t => t.visible !== false);
  const axis = () => [chart("curve-0").layout.xaxis.title.text, Math.max(...chart("curve-0").data[0].x)];
  const found = {
    charts: charts.map(c => [c.name, chart(c.name).querySelectorAll("svg.main-svg path, svg.main-svg text").length]),
    before: seen(), steps: axis(),
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
  document.body.insertAdjacentHTML("beforeend", "<div id='found'>" + JSON.stringify(found) + "</div>");
});
</script></body>
"""


@pytest.fixture(scope="module")
def browsed(report, tmp_path_factory):
    """What a browser says of the page on its console, and what the page has become after a few clicks."""
    browser = find_browser()
    assert browser, ADVICE
    used = tmp_path_factory.mktemp("browser")
    (used / "page.html").write_text(report[1].read_text().replace("</body>", USE))
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


@pytest.mark.browser
def test_page_loads_without_a_word_on_the_console(browsed):
    assert browsed[0] == []


@pytest.mark.browser
def test_every_chart_is_drawn(browsed):
    drawn = dict(browsed[1]["charts"])
    assert set(drawn) == {"curve-0", "curve-1", "aggregates", "improvement", "profiles", "efficiency", "cost"}
    assert all(count > 20 for count in drawn.values()), drawn


@pytest.mark.browser
def test_contestant_is_hidden_everywhere_and_comes_back(browsed):
    found = browsed[1]
    assert set(found["before"]) == set(found["after"]) == {True}
    assert set(found["hidden"]) == {False}
    assert found["rows"] == 4  # a verdict, two tasks, and all of them


@pytest.mark.browser
def test_axis_switches_between_steps_and_time(browsed, report):
    found = browsed[1]
    assert found["steps"] == found["again"] == ["environment steps", 20_000]
    assert found["time"][0].startswith("hours")
    assert found["time"][1] == pytest.approx(max(report[0].curves[0].seconds) / 3600)


def test_sweep_that_does_not_know_a_random_policys_return_is_refused(tmp_path):
    path = make_up(tmp_path, ("sac",), ("Hopper-v5",), 2, 4) / "sweep.json"
    record = json.loads(path.read_text())
    assert record.pop("random_returns") == {"Hopper-v5": 20.0}
    path.write_text(json.dumps(record))
    with pytest.raises(BisacError, match=r"what a random policy gets on Hopper-v5.*Run its command again"):
        analyse(read_sweep(tmp_path), None)


def test_page_asks_nobody_for_anything(report):
    page = re.sub(r"(?s)<script>.*?</script>", "", report[1].read_text())
    assert not re.search(r'(?:src|href)="(?!data:)', page)
