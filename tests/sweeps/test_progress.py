"""How far runs have come, and how long the rest takes."""

import pytest
from made_up_sweep import PLAN, pretend

from bisac.sweeps.progress import RunProgress, progress_of, remaining_seconds


def test_progress_ignores_a_line_that_is_being_written(tmp_path):
    planned = next(PLAN.runs(tmp_path))
    assert progress_of(planned) == RunProgress(0, 0.0, None, None, False)
    pretend(planned, 40, seconds=20.0)
    assert progress_of(planned) == RunProgress(40, 20.0, 1.5, 2.0, False)


@pytest.mark.parametrize(
    "damage", [b"\0" * 40 + b"\n", b"step,wall_time,eval_return\n1,2,x\n", b"a,b\n1,2\n", b"\xff\n"]
)
def test_run_whose_log_is_damaged_is_gone_on_with(damage, tmp_path):
    planned = next(PLAN.runs(tmp_path))
    pretend(planned, 100)
    assert progress_of(planned).complete
    (planned.folder / "progress.csv").write_bytes(damage)  # the run writes it anew, from its checkpoint
    assert progress_of(planned) == RunProgress(0, 0.0, None, None, False)


def test_the_pace_is_that_of_the_last_five_rows(tmp_path):
    planned = next(PLAN.runs(tmp_path))
    pretend(planned, 0)
    times = [(10, 100.0), (20, 200.0), (30, 210.0), (40, 220.0), (50, 230.0), (60, 240.0), (70, 245.0)]
    lines = [f"{step},{seconds},1.0\n" for step, seconds in times]
    (planned.folder / "progress.csv").write_text("".join(["step,wall_time,eval_return\n", *lines]))
    assert progress_of(planned).rate == pytest.approx((70 - 20) / (245 - 200))


def test_remaining_time_is_what_steps_cost_so_far(tmp_path):
    runs = list(PLAN.runs(tmp_path))
    told = {run.folder: progress_of(run) for run in runs}
    assert remaining_seconds(runs, told, 2) is None
    pretend(runs[0], 100, seconds=50.0)  # sac: half a second a step
    pretend(runs[1], 10, seconds=20.0)  # bisac: two
    told = {run.folder: progress_of(run) for run in runs}
    # 90 steps of bisac, 100 of sac, 100 of bisac.
    assert remaining_seconds(runs, told, 2) == pytest.approx((180 + 50 + 200) / 2)
    assert remaining_seconds(runs, told, 8) == pytest.approx(200)
