"""A run survives kills, crashes and failing disks at any moment, and damage to any one file, without losing a bit."""

import json
import random
import shutil
import signal
import warnings
from contextlib import ExitStack

import equinox as eqx
import gymnasium as gym
import jax
import numpy as np
import pytest
from damage import damages, every_file, spoil
from faults import broken_disk, counted_calls, crash_and_go_on, fail_and_go_on, faulty_disk, full_disk
from forging import refusals, signed
from probe_envs import Counter, Truncated
from short_hopper import HOPPER, ShortHopper
from small_runs import SETTINGS, SHORT, SMALL, VARIANTS, at_each_step, dying_at, fingerprint, host_collector

import bisac
from bisac.algos import SAC
from bisac.collect.learning import DivergedError, check_sound
from bisac.runs.checkpoint import checkpoints as writing
from bisac.runs.checkpoint import contents as reading
from bisac.runs.checkpoint import manifest
from bisac.runs.checkpoint.checkpoints import Checkpoints
from bisac.runs.checkpoint.manifest import read_manifest
from bisac.runs.folder import RunFolder
from bisac.runs.log import read_log


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    out = tmp_path_factory.mktemp("straight") / "run"
    bisac.train(Counter, out=out, **SMALL, **SHORT)
    return out


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that died at step 90, with checkpoints of steps 60 and 80."""
    out = tmp_path_factory.mktemp("stopped") / "run"
    with dying_at(90):
        bisac.train(Counter, out=out, **SMALL, **SHORT)
    assert [path.name for path in sorted((out / "checkpoints").glob("step-*"))] == [
        "step-000000000060",
        "step-000000000080",
    ]
    return out


def resumed(source, tmp_path, **changes):
    """The fingerprint of a copy of a run, resumed to its end, and what it warned of."""
    shutil.copytree(source, tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bisac.resume(tmp_path, env=Counter, verbose=False, **changes)
    return fingerprint(tmp_path), [str(warning.message) for warning in caught]


SHAPES = [
    ("sac", 3),
    ("sac --critic-norm none", 3),
    ("bisac", 3),
    ("td3", 1),
    ("ppo", 3),
    ("a2c", 2),
]


@pytest.mark.parametrize(("variant", "num_envs"), SHAPES)
def test_resumed_run_equals_one_never_interrupted(variant, num_envs, tmp_path):
    settings = SETTINGS | VARIANTS[variant] | {"num_envs": num_envs, "verbose": False}
    ShortHopper.ended.clear()
    bisac.train(HOPPER, out=tmp_path / "straight", **settings)
    assert ShortHopper.ended.keys() == {"a fall", "the time limit"}
    rng = random.Random(variant)
    for moment in sorted(rng.sample(range(1, 600), 3)):
        with dying_at(moment):
            if (tmp_path / "torn").exists():
                bisac.resume(tmp_path / "torn", verbose=False)
            else:
                bisac.train(HOPPER, out=tmp_path / "torn", **settings)
    bisac.resume(tmp_path / "torn", verbose=False)
    assert fingerprint(tmp_path / "torn") == fingerprint(tmp_path / "straight")


def test_fingerprint_sees_a_difference(straight, tmp_path):
    bisac.train(Counter, out=tmp_path / "other", **SMALL | {"seed": 4}, **SHORT)
    other, same = fingerprint(tmp_path / "other"), fingerprint(straight)
    assert all(other[name] != same[name] for name in same)


def test_crash_at_any_write_is_survived(straight, tmp_path):
    """Dead from the n-th call on that changes a file, whatever it was for: starting, logging, saving, leaving."""
    calls = counted_calls(tmp_path / "count")
    for nth in random.Random(0).sample(range(1, len(calls) + 1), 6):
        out = tmp_path / str(nth)
        crash_and_go_on(out, nth)
        assert fingerprint(out) == fingerprint(straight), (nth, calls[nth - 1])
        assert not list((out / "checkpoints").rglob("*.partial")), (nth, calls[nth - 1])


@pytest.mark.parametrize("fault", [full_disk, broken_disk])
def test_write_that_fails_does_not_end_the_run(fault, straight, tmp_path):
    """From the first step to the last it costs a warning; at the start and at the end, a sentence."""
    calls = counted_calls(tmp_path / "count")
    ends = 0
    for nth in random.Random(fault.__name__).sample(range(1, len(calls) + 1), 6):
        out = tmp_path / str(nth)
        ended, warned = fail_and_go_on(out, nth, fault())
        ends += ended
        assert all("The last whole checkpoint is" in text for text in warned)
        assert fingerprint(out) == fingerprint(straight), (nth, calls[nth - 1])
    assert ends <= 3  # most of the calls are of the training itself


def test_disk_full_for_a_while_costs_no_row_and_no_step(straight, tmp_path, monkeypatch):
    out, disk = tmp_path / "run", ExitStack()

    def act(now):
        if now == 30:
            disk.enter_context(faulty_disk(out, lambda _: True, full_disk()))
        if now == 70:
            disk.close()

    at_each_step(monkeypatch, act)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bisac.train(Counter, out=out, **SMALL, **SHORT)
    warned = [str(warning.message) for warning in caught]
    assert fingerprint(out) == fingerprint(straight)
    assert [text.split(" could")[0] for text in warned] == [
        "the log and the best policy of step 40",
        "the checkpoint of step 40",
        "the checkpoint of step 60",
    ]
    assert "No space left on device" in warned[1]
    assert "The last whole checkpoint is that of step 20." in warned[2]


def test_any_damaged_file_costs_one_checkpoint_and_is_named(stopped, tmp_path):
    assert len(every_file(stopped)) == 6
    shutil.copytree(stopped, tmp_path / "run")
    for path in every_file(tmp_path / "run"):
        whole = path.read_bytes()
        for how, change in damages(path).items():
            spoil(path, change)
            checkpoints = Checkpoints(tmp_path / "run" / "checkpoints")
            (problem,) = checkpoints.recover()
            assert path.name in problem, how
            assert [kept.step for kept in checkpoints.kept] == [60], how
            path.write_bytes(whole)


@pytest.mark.parametrize("index", range(6))
def test_run_goes_on_from_the_checkpoint_before_a_damaged_one(index, straight, stopped, tmp_path):
    shutil.copytree(stopped, tmp_path / "run")
    path = every_file(tmp_path / "run")[index]
    spoil(path, random.Random(index).choice(list(damages(path).values())))
    found, warned = resumed(tmp_path / "run", tmp_path / "again")
    assert found == fingerprint(straight)
    assert len(warned) == 1
    assert path.name in warned[0]
    assert warned[0].endswith("Using the checkpoint of step 60 instead.")
    assert Checkpoints(tmp_path / "again" / "checkpoints").recover() == []


def test_no_whole_checkpoint_is_said_and_nothing_is_touched(stopped, tmp_path):
    shutil.copytree(stopped, tmp_path / "run")
    for path in (tmp_path / "run" / "checkpoints").glob("step-*/state.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(bisac.BisacError, match=r"no checkpoint of .* is whole: .*80.* bytes instead of .*60"):
        bisac.resume(tmp_path / "run", env=Counter, verbose=False)
    assert len(list((tmp_path / "run" / "checkpoints").glob("step-*"))) == 2


def test_damaged_config_is_taken_from_the_checkpoint(straight, stopped, tmp_path):
    shutil.copytree(stopped, tmp_path / "run")
    (tmp_path / "run" / "config.json").write_text('{"env": "Coun')
    found, warned = resumed(tmp_path / "run", tmp_path / "again")
    assert found == fingerprint(straight)
    assert "is damaged" in warned[0]
    assert json.loads((tmp_path / "again" / "config.json").read_text())["run"]["steps"] == 100


def test_kept_checkpoints_share_no_file(straight):
    old, new = (read_manifest(path) for path in sorted((straight / "checkpoints").glob("step-*")))
    assert not {piece.file.name for piece in old.pieces} & {piece.file.name for piece in new.pieces}


def test_save_writes_only_rows_that_are_new_to_it(tmp_path, monkeypatch):
    for module in (writing, reading, manifest):
        monkeypatch.setattr(module, "PIECE_ROWS", 16)
    settings = SMALL | SHORT | {"replay_size": 48, "checkpoint_every": 8, "steps": 80}
    bisac.train(Counter, out=tmp_path, **settings)
    newest = read_manifest(tmp_path / "checkpoints" / "step-000000000080")
    written = [tuple(map(int, piece.file.name.removesuffix(".safetensors").split("-"))) for piece in newest.pieces]
    # Rows 32 to 80, each written once at every second save: the save between them builds on other files.
    assert written == [(32, 48, 48), (48, 64, 64), (64, 80, 80)]
    assert bisac.resume(tmp_path, env=Counter, steps=81, verbose=False)
    newest = read_manifest(tmp_path / "checkpoints" / "step-000000000081")
    written = [tuple(map(int, piece.file.name.removesuffix(".safetensors").split("-"))) for piece in newest.pieces]
    assert written == [(32, 48, 56), (48, 64, 72), (64, 80, 81), (80, 81, 81)]  # rows 33 to 81, and one before


def test_other_format_versions_are_refused(stopped, tmp_path):
    shutil.copytree(stopped, tmp_path / "run")
    for change in ({"version": 0}, {"version": 3}, {"version": True}, {"format": "other"}):
        path = max((tmp_path / "run" / "checkpoints").glob("step-*")) / "manifest.json"
        whole = path.read_bytes()
        path.write_bytes(signed({**json.loads(whole), **change}))
        with pytest.raises(
            bisac.BisacError, match=r"has checkpoint format .*; this bisac reads bisac-checkpoint 1 and 2"
        ):
            bisac.resume(tmp_path / "run", env=Counter, verbose=False)
        path.write_bytes(whole)


def test_longer_run_equals_one_planned_so(straight, tmp_path):
    bisac.train(Counter, out=tmp_path / "run", **SMALL, **SHORT | {"steps": 80})
    found, warned = resumed(tmp_path / "run", tmp_path / "again", steps=100)
    assert found == fingerprint(straight)
    assert warned == []
    assert json.loads((tmp_path / "again" / "config.json").read_text())["run"]["steps"] == 100


def test_longer_run_that_ends_where_it_was_stopped_is_evaluated_there(tmp_path):
    bisac.train(Counter, out=tmp_path / "run", **SMALL, **SHORT | {"steps": 60})
    with dying_at(70):
        bisac.train(Counter, out=tmp_path / "longer", **SMALL, **SHORT)
    resumed(tmp_path / "longer", tmp_path / "again", steps=60)
    rows, planned = ([row | {"wall_time": 0} for row in read_log(RunFolder(tmp_path / n))] for n in ("again", "run"))
    assert [row["step"] for row in rows] == [40, 60]
    assert rows == planned
    for policy in ("policy.safetensors", "best.safetensors"):
        assert (tmp_path / "again" / policy).read_bytes() == (tmp_path / "run" / policy).read_bytes()


def test_complete_run_is_left_as_it_is(straight, tmp_path):
    found, warned = resumed(straight, tmp_path / "again")
    assert found == fingerprint(straight)
    assert warned == []


def contents(folder):
    return {name: (folder / name).read_bytes() for name in ("progress.csv", "policy.safetensors", "best.safetensors")}


def test_complete_run_whose_checkpoints_were_deleted_is_left_as_it_is(straight, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(straight, run)
    shutil.rmtree(run / "checkpoints")
    bisac.resume(run, env=Counter, verbose=False)
    assert contents(run) == contents(straight)
    with pytest.raises(bisac.BisacError, match=r"has a policy of step 100, but no checkpoint to go on from"):
        bisac.resume(run, steps=200, env=Counter, verbose=False)
    assert contents(run) == contents(straight)


@pytest.mark.parametrize("checkpoint_every", [0, 20])
def test_stopped_run_without_checkpoints_is_refused(checkpoint_every, tmp_path, monkeypatch):
    at_each_step(monkeypatch, lambda step: signal.raise_signal(signal.SIGINT) if step == 70 else None)
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        bisac.train(Counter, out=run, **SMALL, **SHORT | {"checkpoint_every": checkpoint_every})
    shutil.rmtree(run / "checkpoints", ignore_errors=True)
    before = contents(run)
    with pytest.raises(bisac.BisacError, match=r"has a policy of step \d+, but no checkpoint to go on from"):
        bisac.resume(run, env=Counter, verbose=False)
    assert contents(run) == before


def test_run_that_ended_after_its_last_stride_is_complete(tmp_path):
    """Three environments pass 100 steps at 102."""
    bisac.train(Counter, out=tmp_path / "run", **SMALL | SHORT | {"num_envs": 3})
    before = fingerprint(tmp_path / "run")
    for steps in (None, 100):
        found, warned = resumed(tmp_path / "run", tmp_path / f"again-{steps}", steps=steps)
        assert found == before
        assert warned == []


def test_only_length_and_saving_may_change(stopped, tmp_path):
    shutil.copytree(stopped, tmp_path / "run")
    config = tmp_path / "run" / "config.json"
    whole = json.loads(config.read_text())
    for part, name, value in [("hyperparameters", "gamma", 0.5), ("run", "seed", 4), ("run", "eval_every", 1)]:
        config.write_text(json.dumps(whole | {part: whole[part] | {name: value}}))
        with pytest.raises(bisac.BisacError, match=f"{name} is {value} in config.json and was .*cannot change"):
            bisac.resume(tmp_path / "run", env=Counter, verbose=False)
    config.write_text(json.dumps(whole))
    with pytest.raises(bisac.BisacError, match="has taken 80 steps already"):
        bisac.resume(tmp_path / "run", steps=79, env=Counter, verbose=False)
    bisac.resume(tmp_path / "run", steps=90, checkpoint_every=3, env=Counter, verbose=False)
    assert read_manifest(max((tmp_path / "run" / "checkpoints").glob("step-*"))).step == 90
    assert (tmp_path / "run" / "checkpoints" / "step-000000000087").exists()


def test_another_environment_is_refused(stopped, tmp_path):
    class Wider(Counter):
        observation_space = gym.spaces.Box(-1.0, 1.0, (2,))

    shutil.copytree(stopped, tmp_path / "run")
    with pytest.raises(bisac.BisacError, match="not what it was when the run was saved"):
        bisac.resume(tmp_path / "run", env=Wider, verbose=False)


def test_machine_that_differs_is_told(stopped, tmp_path):
    shutil.copytree(stopped, tmp_path / "run")
    config = tmp_path / "run" / "config.json"
    config.write_text(config.read_text().replace(f'"jax": "{jax.__version__}"', '"jax": "0.0.1"'))
    _, warned = resumed(tmp_path / "run", tmp_path / "again")
    assert len(warned) == 1
    assert f"jax 0.0.1 then, {jax.__version__} now" in warned[0]


def test_two_processes_never_train_in_one_folder(stopped, tmp_path):
    shutil.copytree(stopped, tmp_path / "run")
    with RunFolder(tmp_path / "run").held():
        for attempt in (lambda **k: bisac.resume(env=Counter, verbose=False, path=k["out"]),
                        lambda **k: bisac.train(Counter, overwrite=True, **SMALL, **SHORT, **k)):  # fmt: skip
            with pytest.raises(bisac.BisacError, match="another process is training in"):
                attempt(out=tmp_path / "run")
    bisac.resume(tmp_path / "run", env=Counter, verbose=False)


class Forgetful(Truncated):
    """Does not repeat itself when seeded."""

    made = 0

    def first_state(self):
        Forgetful.made += 1
        return float(Forgetful.made)


def test_environment_that_does_not_repeat_itself_is_told(tmp_path):
    settings = SMALL | SHORT | {"num_envs": 2}
    with dying_at(53):
        bisac.train(Forgetful, out=tmp_path / "run", **settings)
    with pytest.warns(UserWarning, match="2 of 2 environments begin a new episode, so this resume is not exact"):
        bisac.resume(tmp_path / "run", env=Forgetful, verbose=False)
    lines = (tmp_path / "run" / "progress.csv").read_text().splitlines()
    column = lines[0].split(",").index("inexact_resumes")
    assert [line.split(",")[column] for line in lines[1:]] == ["0", "1", "1"]


def test_policy_of_any_checkpoint(stopped, straight):
    for path in (stopped / "checkpoints").glob("step-*"):
        assert bisac.load(path).predict(np.zeros(1))[0].shape == (2,)
    newest = max((straight / "checkpoints").glob("step-*"))
    obs = np.linspace(-1, 1, 5)[:, None]
    np.testing.assert_array_equal(bisac.load(newest).predict(obs)[0], bisac.load(straight).predict(obs)[0])


class Explodes(Truncated):
    """Its rewards leave the floats' range at its hundredth step."""

    steps = 0

    def step(self, action):
        obs, reward, *rest = super().step(action)
        Explodes.steps += 1
        return obs, reward * (1e38 if Explodes.steps >= 50 else 1.0), *rest


def test_bad_numbers_never_replace_a_good_checkpoint(tmp_path):
    settings = SMALL | SHORT | {"eval_every": 1000, "steps": 1000}
    with pytest.raises(
        bisac.BisacError, match=r"training diverged: \w+ became (nan|inf) in update \d+, by step (49|5\d)"
    ):
        bisac.train(Explodes, out=tmp_path / "run", **settings)
    checkpoints = Checkpoints(tmp_path / "run" / "checkpoints")
    assert checkpoints.recover() == []
    assert [kept.step for kept in checkpoints.kept] == [20, 40]


def test_bad_parameters_are_named():
    collector = host_collector(SAC(hidden=(8,), replay_size=10), Counter)
    learning = collector.learning(collector.start(), 0)
    check_sound(collector.request.algo, learning, 0, 0, 1)
    bad = eqx.tree_at(
        lambda t: t.agent.critic.model, learning, replace_fn=lambda m: jax.tree.map(lambda a: a * np.nan, m)
    )
    with pytest.raises(DivergedError, match=r"critic\.model\S+ is not finite at step 0"):
        check_sound(collector.request.algo, bad, 0, 0, 1)


def test_no_checkpoints_where_none_are_wanted(tmp_path):
    bisac.train(Counter, out=tmp_path / "run", **SMALL, **SHORT | {"checkpoint_every": 0})
    assert not (tmp_path / "run" / "checkpoints").exists()


@pytest.mark.parametrize("name", ["policy.safetensors", "state.safetensors", "manifest.json"])
def test_foreign_files_do_no_harm(name, stopped, tmp_path):
    """Mutated at random or forged with right checksums: our own error, or a file that is as good as before."""
    shutil.copytree(stopped, tmp_path / "run")
    path = max((tmp_path / "run" / "checkpoints").glob("step-*")) / name
    assert refusals(path, 120, random.Random(name)) > 60
