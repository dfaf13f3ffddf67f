"""Reports: what they say of made-up sweeps; the page's content here, the page in a browser in test_browser.py."""

import csv
import dataclasses
import html
import json
import re
import shutil
from itertools import pairwise

import numpy as np
import pytest
from made_up_sweep import make_up

from bisac.cli import run
from bisac.errors import BisacError
from bisac.plotting import statistics
from bisac.report import figures
from bisac.report.analyse import analyse
from bisac.report.data import read_sweep
from bisac.report.page import render_page
from bisac.report.tables import to_latex
from bisac.report.write import write_report

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


def test_numbers_say_what_was_made_up(report, sweep):
    analysis, *_ = report
    assert analysis.reference == "sac"
    assert analysis.aggregated == ["Hopper-v5", "Walker2d-v5"]
    by_name = {aggregate.contestant: aggregate for aggregate in analysis.aggregates}
    assert by_name["sac"].mean.value == pytest.approx(1.0)  # by definition of the scale
    assert by_name["bisac"].difference.establishes(0.0)
    assert by_name["bisac"].improvement.value > 0.95
    assert not by_name["forward-sac"].difference.establishes(0.0)
    assert by_name["bisac"].difference.value == pytest.approx(by_name["bisac"].iqm.value - by_name["sac"].iqm.value)
    assert [scale.zero for scale in analysis.scales] == [20.0, 20.0]
    result, reference = (analysis.result("Walker2d-v5", name) for name in ("bisac", "sac"))
    assert result.difference.value == pytest.approx(result.score.value - reference.score.value)
    assert result.difference.value > 500.0
    pairs = [ours > theirs for ours in result.scores for theirs in reference.scores]
    assert result.improvement.value == pytest.approx(np.mean(pairs))
    curve = [float(row["eval_return"]) for row in table(sweep / "Walker2d-v5/bisac/seed0/progress.csv")]
    late = [np.mean(pair) >= np.mean(reference.scores) for pair in pairwise(curve)]  # of a tenth
    assert result.reached[0] == 1000 * (late.index(True) + 2)
    # Made up as 1.7 times the cost of sac.
    ratio = result.median_seconds / analysis.result("Walker2d-v5", "sac").median_seconds
    assert ratio == pytest.approx(1.7, rel=0.15)


def test_final_scores_are_means_of_the_last_tenth(report, sweep):
    analysis, *_ = report
    rows = table(sweep / "Hopper-v5/sac/seed2/progress.csv")
    expected = np.mean([float(row["eval_return"]) for row in rows[-2:]])
    assert analysis.result("Hopper-v5", "sac").scores[2] == pytest.approx(expected)


def test_what_comes_after_the_plan_makes_no_score(tmp_path):
    sweep = make_up(tmp_path, ("sac", "bisac"), ("Hopper-v5",), seeds=2, points=20)
    before = [result.scores for result in analyse(read_sweep(sweep), None).results]
    log = sweep / "Hopper-v5/sac/seed0/progress.csv"
    log.write_text(log.read_text() + "".join(f"{step},{step},99999.0\n" for step in (21_000, 22_000)))
    assert [result.scores for result in analyse(read_sweep(sweep), None).results] == before


def test_small_returns_keep_their_digits(tmp_path):
    sweep = make_up(tmp_path, ("sac", "bisac"), ("bisac/Peaks-v0",), points=10, gains={"bisac": 1.5})
    record = json.loads((sweep / "sweep.json").read_text())
    record["random_returns"] = {"bisac/Peaks-v0": 0.01}
    (sweep / "sweep.json").write_text(json.dumps(record))
    for log in sweep.glob("*/*/*/progress.csv"):
        head, *rows = log.read_text().splitlines()
        cut = [(*row.split(",")[:2], repr(float(row.split(",")[2]) / 2000.0)) for row in rows]
        log.write_text("\n".join([head, *map(",".join, cut), ""]))
    page = render_page(analyse(read_sweep(sweep), None), "small")
    ((value, low, high),) = re.findall(r'class="better">\+(\S+) <small>\[\+(\S+), \+(\S+)\]', page)
    assert 0.2 < float(low) < float(value) < float(high) < 1.0


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
    assert 'class="verdict better"' in report[1].read_text()
    assert 'class="verdict worse"' not in report[1].read_text()


def test_a_contestant_that_is_worse_is_called_worse(tmp_path):
    sweep = make_up(tmp_path, ("sac", "bisac"), ("Hopper-v5",), points=10, gains={"bisac": 0.4})
    page = render_page(analyse(read_sweep(sweep), None), "worse")
    assert 'class="verdict worse"' in page
    assert 'class="verdict better"' not in page


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


def test_runs_that_were_never_evaluated_at_about_the_same_step_have_no_curve(tmp_path):
    sweep = make_up(tmp_path, ("sac",), ("Hopper-v5",), seeds=2, points=1)
    later = sweep / "Hopper-v5" / "sac" / "seed1" / "progress.csv"
    later.write_text(later.read_text().replace("\n1000,", "\n1016,"))
    analysis = analyse(read_sweep(sweep), None)
    assert analysis.curves == []
    assert [len(result.scores) for result in analysis.results] == [2]
    assert "Hopper-v5" in plain(render_page(analysis, "no curve"))
    assert figures.draw_figures(analysis)["curves"]


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
    flat = [dataclasses.replace(run.evaluations, returns=np.full(10, 20.0 + gain))
            for run, gain in zip(data.runs, gained, strict=True)]  # fmt: skip
    runs = [dataclasses.replace(run, evaluations=each) for run, each in zip(data.runs, flat, strict=True)]
    [scale] = analyse(dataclasses.replace(data, runs=runs), None).scales
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
