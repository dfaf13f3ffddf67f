"""Learning curves of made-up runs."""

import dataclasses
import json

import numpy as np
import pytest

from bisac.algos import REGISTRY, SAC
from bisac.errors import BisacError
from bisac.figures.curves import CurvesFigure


def write_run(
    folder, algo="sac", seed=0, returns=(1.0, 2.0), env="Hopper-v5", start=1000, init=None, **hyperparameters
):
    folder.mkdir(parents=True)
    run = {"seed": seed, "num_envs": 1, "env_arg": [], "init": init}
    config = {"env": env, "algo": algo, "hyperparameters": hyperparameters, "run": run}
    (folder / "config.json").write_text(json.dumps(config))
    rows = "".join(f"{start * (i + 1)},{i},{value}\n" for i, value in enumerate(returns))
    (folder / "progress.csv").write_text(f"step,wall_time,eval_return\n{rows}")


def make(tmp_path, **settings):
    return CurvesFigure(runs=(tmp_path,), **settings).make(lambda text: None)


@pytest.mark.parametrize(("statistic", "expected"), [("mean", 21.2), ("iqm", 2.0)])
def test_statistics_of_known_numbers(statistic, expected, tmp_path):
    for seed, value in enumerate((0.0, 1.0, 2.0, 3.0, 100.0)):
        write_run(tmp_path / str(seed), seed=seed, returns=(value,))
    (group,) = make(tmp_path, statistic=statistic).numbers["groups"]
    np.testing.assert_allclose(group[statistic], [expected])
    assert group["low"][0] < expected < group["high"][0]


def test_band_is_narrower_at_less_confidence(tmp_path):
    for seed in range(5):
        write_run(tmp_path / str(seed), seed=seed, returns=(float(seed**2),))
    (wide,), (narrow,) = (make(tmp_path, confidence=each).numbers["groups"] for each in (0.95, 0.5))
    assert wide["low"][0] < narrow["low"][0] < narrow["high"][0] < wide["high"][0]


def test_seeds_are_grouped_and_setups_kept_apart(tmp_path):
    for seed, value in enumerate((10.0, 20.0, 30.0)):
        write_run(tmp_path / "sweep" / f"sac{seed}", seed=seed, returns=(0.0, value), critic="joint")
    write_run(tmp_path / "vdn", returns=(5.0, 6.0, 7.0), critic="vdn-a")
    write_run(tmp_path / "wide", returns=(8.0,), critic="joint", gamma=0.9)
    made = make(tmp_path)
    groups = {group["label"]: group for group in made.numbers["groups"]}
    assert set(groups) == {"SAC, gamma 0.99", "SAC, gamma 0.9", "SAC, VDN-a critic"}
    assert groups["SAC, gamma 0.99"]["seeds"] == [0, 1, 2]
    np.testing.assert_allclose(groups["SAC, gamma 0.99"]["mean"], [0.0, 20.0])
    assert groups["SAC, gamma 0.99"]["low"][1] >= 10.0
    assert groups["SAC, VDN-a critic"]["low"] is None
    assert any("1 seed, so no band" in line for line in made.summary)
    assert made.pictures["png"].startswith(b"\x89PNG")
    assert made.pictures["pdf"].startswith(b"%PDF")


def test_runs_of_earlier_versions_meet_those_of_today(tmp_path):
    write_run(tmp_path / "old", seed=0, critic_norm="batch")
    today = json.loads(json.dumps(dataclasses.asdict(SAC().settled())))
    write_run(tmp_path / "new", seed=1, **today)
    (group,) = make(tmp_path).numbers["groups"]
    assert (group["label"], group["seeds"]) == ("SAC", [0, 1])


def test_runs_that_began_from_another_are_a_line_of_their_own(tmp_path):
    for seed in range(2):
        write_run(tmp_path / f"fresh{seed}", seed=seed)
        write_run(tmp_path / f"warm{seed}", seed=seed, init="runs/before", returns=(3.0, 4.0))
    groups = {group["label"]: group["mean"].tolist() for group in make(tmp_path).numbers["groups"]}
    assert groups == {"SAC, init None": [1.0, 2.0], "SAC, init runs/before": [3.0, 4.0]}


def test_an_algorithm_of_ones_own_is_drawn_too(tmp_path, monkeypatch):
    monkeypatch.setitem(REGISTRY, "gentle-sac", SAC)
    write_run(tmp_path / "own", algo="gentle-sac")
    write_run(tmp_path / "ours")
    made = make(tmp_path)
    assert {group["label"] for group in made.numbers["groups"]} == {"SAC", "gentle-sac"}
    assert made.pictures["png"].startswith(b"\x89PNG")


def test_seeds_of_different_length_meet_at_common_steps(tmp_path):
    write_run(tmp_path / "a", seed=0, returns=(1.0, 2.0, 3.0))
    write_run(tmp_path / "b", seed=1, returns=(5.0, 6.0))
    (group,) = make(tmp_path).numbers["groups"]
    np.testing.assert_array_equal(group["steps"], [1000, 2000])


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (dict(seed=0), "of the same seed and setup"),
        (dict(seed=1, start=700, returns=(1.0,)), "evaluated at no common stretch of steps"),
        (dict(returns=()), "no evaluation yet"),
        (dict(algo="dqn"), "algorithm that this bisac does not know"),
    ],
)
def test_bad_runs(others, message, tmp_path):
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", **others)
    with pytest.raises(BisacError, match=message):
        make(tmp_path)


def test_no_runs(tmp_path):
    with pytest.raises(BisacError, match="no run folder"):
        make(tmp_path)
    with pytest.raises(BisacError, match="needs one RUN"):
        CurvesFigure().make(lambda text: None)
