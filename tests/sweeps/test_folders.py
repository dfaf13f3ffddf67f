"""Finding runs on disk, and reading what they have come to."""

import numpy as np
import pytest
from made_up_sweep import PLAN, pretend

from bisac.errors import BisacError
from bisac.sweeps.folders import find_runs, read_evaluations, run_folder


def test_runs_are_found_at_any_depth_and_each_once(tmp_path):
    runs = list(PLAN.runs(tmp_path / "sweep"))
    for run in runs[:3]:
        pretend(run, 10)
    (tmp_path / "sweep" / "notes").mkdir()
    (tmp_path / "sweep" / "notes" / "config.json").write_text("{}")  # somebody else's: it has no progress.csv
    found = find_runs([tmp_path, runs[0].folder])
    assert found == sorted(run.folder for run in runs[:3])
    with pytest.raises(BisacError, match=r"there is no run folder at .*notes or below it"):
        find_runs([tmp_path, tmp_path / "sweep" / "notes"])


def test_layout_is_that_of_the_plan(tmp_path):
    assert run_folder(tmp_path, "dm_control/cheetah", "sac", 3) == tmp_path / "dm_control-cheetah/sac/seed3"
    assert next(PLAN.runs(tmp_path)).folder == run_folder(tmp_path, "Pendulum-v1", "sac", 0)


def test_evaluations_end_before_the_first_that_is_no_number(tmp_path):
    planned = next(PLAN.runs(tmp_path))
    pretend(planned, 10)
    rows = ["step,wall_time,eval_return", "0,0.5,-3.0", "10,,", "20,2.5,4.0", "30,3.5,nan", "40,4.5,5.0", "50,5."]
    (planned.folder / "progress.csv").write_text("\n".join(rows))
    read = read_evaluations(planned.folder)
    np.testing.assert_array_equal(read.steps, [0.0, 20.0])
    np.testing.assert_array_equal(read.seconds, [0.5, 2.5])
    np.testing.assert_array_equal(read.returns, [-3.0, 4.0])
    assert read.taken == 20
    assert read.config["env"] == "Pendulum-v1"


def test_run_that_never_started_has_no_evaluations(tmp_path):
    read = read_evaluations(tmp_path / "nowhere")
    assert (len(read), read.taken, read.config) == (0, 0, {})


def test_progress_that_is_none_is_told(tmp_path):
    (tmp_path / "progress.csv").write_text("time,reward\n1,2\n")
    with pytest.raises(BisacError, match=r"progress\.csv is damaged or not one of this bisac's"):
        read_evaluations(tmp_path)
