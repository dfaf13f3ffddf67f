"""Seeds of a contestant on a task of the device go side by side in one process, also when the sweep goes on."""

from pathlib import Path

from bisac.cli.sweep import parse_sweep
from bisac.cli.train import parse_train
from bisac.sweeps.groups import side_by_side
from bisac.sweeps.plan import parse_seeds

WORDS = "--env classic/pendulum Pendulum-v1 --algo sac td3 --seeds 0:3 --steps 900 --gamma 0.8 --out sweep"


def planned(tmp_path):
    return list(parse_sweep(WORDS.split())[1].runs(tmp_path))


def seeds(groups):
    return {(g.env, g.contestant.name): [run.seed for run in g.all] for g in groups if g.beside}


def test_a_contestants_seeds_on_the_device_are_one_process(tmp_path):
    groups = side_by_side(planned(tmp_path))
    assert seeds(groups) == {("classic/pendulum", "sac"): [0, 1, 2], ("classic/pendulum", "td3"): [0, 1, 2]}
    assert len(groups) == 2 + 6  # Gymnasium's runs stay as they are
    group = groups[0]
    command, _ = parse_train(list(group.arguments[1:]))
    assert parse_seeds(command.seeds or "") == (0, 1, 2)
    for run in group.all:  # what the command makes is what was planned
        assert run.folder == Path(command.run.out or "") / f"seed{run.seed}"
        assert command.hyperparameters.settled() == run.algorithm
    assert command.run.steps == 900


def test_runs_that_cannot_go_on_together_go_on_alone(tmp_path):
    runs = [run for run in planned(tmp_path) if (run.env, run.contestant.name) == ("classic/pendulum", "sac")]
    for run, saved in zip(runs, (["step-1", "step-2"], ["step-2", "step-3"], []), strict=True):
        for name in saved:
            (run.folder / "checkpoints" / name).mkdir(parents=True)
    assert seeds(side_by_side(runs)) == {("classic/pendulum", "sac"): [0, 1]}  # the third was never begun
    (runs[1].folder / "checkpoints" / "step-2").rmdir()
    assert seeds(side_by_side(runs)) == {}
