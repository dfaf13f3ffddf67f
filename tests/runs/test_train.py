import csv
import json
import signal

import jax
import numpy as np
import pytest
from gymnasium import spaces
from probe_envs import Counter, Probe, Truncated
from safetensors.numpy import load_file
from small_runs import at_each_step, fingerprint

import bisac
from bisac.algos import SAC
from bisac.collect import evaluate
from bisac.collect.dispatch import random_return
from bisac.collect.evaluate import EVALUATION_STREAM, HELD_OUT_STREAM, Evaluator, episode_seed
from bisac.envs.task import Task
from bisac.errors import BisacError
from bisac.runs.folder import RunFolder, provenance
from bisac.runs.settings import Settings
from bisac.runs.start import start

TINY = dict(hidden=(8,), batch_size=16, learning_starts=12, replay_size=1000)
SHORT = dict(algo="sac", steps=60, num_envs=1, eval_every=20, eval_episodes=3, verbose=False, **TINY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "a"
    bisac.train(Counter, out=out, **SHORT)
    return out


def rows(folder):
    with (folder / "progress.csv").open() as file:
        return [{name: value for name, value in row.items() if name != "wall_time"} for row in csv.DictReader(file)]


def test_run_folder_is_complete(folder):
    config = json.loads((folder / "config.json").read_text())
    assert config["algo"] == "sac"
    assert config["env"] == "Counter"
    assert config["hyperparameters"]["batch_size"] == 16
    assert config["run"]["steps"] == 60
    assert config["versions"]["jax"]
    assert [row["step"] for row in rows(folder)] == ["20", "40", "60"]
    assert float(rows(folder)[-1]["critic_loss"]) >= 0.0
    assert list(folder.glob("events.out.tfevents.*"))
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert not list(folder.rglob("*.partial"))
    assert bisac.load(folder).predict(np.zeros(1))[0].shape == (2,)


def test_seeded_runs_repeat_bit_for_bit(folder, tmp_path):
    bisac.train(Counter, out=tmp_path / "b", **SHORT)
    assert rows(tmp_path / "b") == rows(folder)
    for name in ("policy.safetensors", "best.safetensors"):
        assert (tmp_path / "b" / name).read_bytes() == (folder / name).read_bytes()
    bisac.train(Counter, out=tmp_path / "c", seed=1, **SHORT)
    assert rows(tmp_path / "c") != rows(folder)


def test_best_policy_is_the_best_evaluated(folder):
    best = max(float(row["eval_return"]) for row in rows(folder))
    evaluator = Evaluator(Task(Counter), 3, seed=0)
    assert evaluator(bisac.load(folder / "best.safetensors")).returns.mean() == pytest.approx(best)


def test_held_out_episodes_are_others():
    seeds = [Evaluator(Task(Counter), 20, 0, stream).seeds for stream in (EVALUATION_STREAM, HELD_OUT_STREAM)]
    training = [episode_seed(0, i, n) for i in range(8) for n in range(100)]
    assert len({*seeds[0], *seeds[1], *training}) == 840


class Evenly(Probe):
    """A hundred steps in a box from 2 to 6, where E[a] is 4 and E[a^2] is 17 1/3."""

    action_space = spaces.Box(2.0, 6.0, (2,))

    def step(self, action):
        self.time += 1
        return self.obs(), float(action[0] + action[1] ** 2), False, self.time == 100, {}


def test_random_policy_draws_evenly_and_repeats():
    assert random_return(Evenly, ()) == pytest.approx(100 * (4 + 17.333), rel=0.03)
    assert random_return(Evenly, ()) == random_return(Evenly, ())


def test_evaluation_equals_a_plain_loop(folder):
    policy = bisac.load(folder)
    result = Evaluator(Task(Counter), 4, seed=5)(policy)
    for i in range(4):
        env, total, length, done = Task(Counter).make(), 0.0, 0, False
        obs, _ = env.reset(seed=episode_seed(5, EVALUATION_STREAM, i))
        while not done:
            obs, reward, terminated, truncated, _ = env.step(policy.predict(obs)[0])
            total, length, done = total + reward, length + 1, terminated or truncated
        assert result.returns[i] == pytest.approx(total, abs=1e-5)
        assert result.lengths[i] == length


def test_evaluation_sees_what_training_sees():
    """An environment that resets to whole numbers and steps to others; its reward is an array of one."""

    class Halves(Probe):
        def obs(self):
            return np.array([self.time / 2]) if self.time else np.array([0])

        def step(self, action):
            self.time += 1
            return self.obs(), np.array([0.5]), False, self.time == 4, {}

    class Notes:
        seen = ()

        def predict(self, observation):
            self.seen = (*self.seen, float(observation[0, 0]))
            return np.zeros((1, 2)), None

    notes = Notes()
    assert Evaluator(Task(Halves), 1, seed=0)(notes).returns == [2.0]
    assert notes.seen == (0.0, 0.5, 1.0, 1.5)


class Endless(Probe):
    reward = 1.0

    def step(self, action):
        return self.obs(), self.reward, False, False, {}


def test_endless_episode_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(evaluate, "MOST_STEPS", 50)
    with pytest.raises(BisacError, match=r"an episode of Endless took 50 steps .* max_episode_steps=1000"):
        random_return(Endless, ())


def test_an_episode_that_ends_at_the_last_moment_counts(monkeypatch):
    monkeypatch.setattr(evaluate, "MOST_STEPS", 5)

    class Five(Probe):
        def step(self, action):
            self.time += 1
            return self.obs(), 1.0, False, self.time == 5, {}

    assert random_return(Five, ()) == 5.0


def test_many_episodes_take_turns_in_few_environments(monkeypatch):
    whole = Evaluator(Task("Pendulum-v1", ("max_episode_steps=3",)), 5, seed=0)
    monkeypatch.setattr(evaluate, "MOST_COPIES", 2)
    few = Evaluator(Task("Pendulum-v1", ("max_episode_steps=3",)), 5, seed=0)
    assert (len(whole.envs), len(few.envs)) == (5, 2)

    class Still:
        def predict(self, observation):
            return np.zeros((len(observation), 1), np.float32), None

    np.testing.assert_array_equal(few(Still()).returns, whole(Still()).returns)


def test_reward_that_is_not_finite_is_refused():
    class Bad(Truncated):
        def step(self, action):
            obs, _, *ends = super().step(action)
            return obs, float("nan"), *ends

    with pytest.raises(BisacError, match="Bad gave a reward that is not finite"):
        random_return(Bad, ())


def test_one_environment_for_all_is_refused():
    shared = Counter()
    with pytest.raises(BisacError, match="gave the same environment twice"):
        Evaluator(Task(lambda: shared), 2, seed=0)


def test_run_too_short_to_learn_is_told(tmp_path):
    with pytest.warns(UserWarning, match="nothing will be learned: --steps 12 end before --learning-starts 12"):
        bisac.train(Counter, out=tmp_path / "x", **SHORT | {"steps": 12})


@pytest.mark.parametrize(
    ("typed", "recorded"),
    [("/x/bin/bisac", "bisac"), ("/x/bisac/__main__.py", "bisac"), ("mine/run.py", "mine/run.py")],
)
def test_recorded_command_is_what_one_would_type(typed, recorded, monkeypatch):
    monkeypatch.setattr("sys.argv", [typed, "train", "Hopper-v5"])
    assert provenance()["command"] == [recorded, "train", "Hopper-v5"]


def test_double_precision_is_refused(folder):
    with jax.enable_x64(True), pytest.raises(BisacError, match="unset JAX_ENABLE_X64"):
        bisac.load(folder)


def test_existing_run_is_kept_unless_told(folder, tmp_path):
    before = (folder / "policy.safetensors").read_bytes()
    with pytest.raises(bisac.BisacError, match="holds a run already"):
        bisac.train(Counter, out=folder, **SHORT)
    assert (folder / "policy.safetensors").read_bytes() == before
    out = tmp_path / "again"
    bisac.train(Counter, out=out, **SHORT)
    (out / "notes.txt").write_text("mine")
    bisac.train(Counter, out=out, overwrite=True, **(SHORT | {"steps": 40}))
    assert [row["step"] for row in rows(out)] == ["20", "40"]
    assert (out / "notes.txt").read_text() == "mine"
    assert len(list(out.glob("events.out.*"))) == 1


def test_run_that_lost_its_config_is_not_taken_over(tmp_path):
    out = tmp_path / "run"
    bisac.train(Counter, out=out, **SHORT | {"checkpoint_every": 20})
    (out / "config.json").unlink()
    with pytest.raises(bisac.BisacError, match="holds a run already"):
        bisac.train(Counter, out=out, **SHORT)
    assert list((out / "checkpoints").glob("step-*"))


def test_nothing_is_written_for_bad_input(tmp_path):
    for bad in (dict(env="CartPole-v1"), dict(env="Hoper-v5")):
        with pytest.raises(bisac.BisacError):
            bisac.train(out=tmp_path / "x", verbose=False, **bad)
    assert not (tmp_path / "x").exists()


def test_diverging_training_is_named_and_leaves_the_log(tmp_path):
    class Explodes(Truncated):
        def step(self, action):
            return (np.full(1, 3e38, np.float32), 3e38, False, False, {})

    with pytest.raises(bisac.BisacError, match=r"training diverged: \w+ became nan in update 1, by step 13"):
        bisac.train(Explodes, out=tmp_path / "x", **(SHORT | {"eval_every": 40, "eval_episodes": 1}))
    assert (tmp_path / "x" / "progress.csv").exists()
    assert not (tmp_path / "x" / "policy.safetensors").exists()  # it would be of no use


def test_diverging_at_the_end_of_an_episode_is_told_of_the_step_that_has_come(tmp_path):
    class Explodes(Truncated):
        def step(self, action):
            obs, _, *rest = super().step(action)
            return obs, 3e38, *rest

    settings = SHORT | {"eval_every": 40, "eval_episodes": 1, "learn_at": "episode"}
    with pytest.raises(bisac.BisacError, match=r"training diverged: \w+ became \w+ in update 1, by step 40\."):
        bisac.train(Explodes, out=tmp_path / "x", **settings)


def test_diverging_rollouts_are_not_blamed_on_the_environment(tmp_path):
    class Explodes(Truncated):
        def step(self, action):
            assert np.isfinite(action).all()
            return (np.full(1, 3e38, np.float32), 3e38, False, False, {})

    settings = dict(algo="a2c", rollout=8, hidden=(8,), normalise_observations=False, normalise_rewards=False)
    with pytest.raises(bisac.BisacError, match=r"training diverged: \w+ became \S+ in update 1, by step 8\."):
        bisac.train(Explodes, out=tmp_path / "x", steps=1000, eval_every=1000, verbose=False, **settings)


class Fails(Truncated):
    """The simulator is gone at a step of all, in training or in evaluation, until it is mended."""

    at, steps = 0, 0

    def step(self, action):
        Fails.steps += 1
        if Fails.steps == Fails.at:
            raise RuntimeError("the simulator is gone")
        return super().step(action)


@pytest.mark.parametrize("algo", ["sac", "a2c"])
@pytest.mark.parametrize("at", [6, 23, 50])  # before the first checkpoint, in an evaluation, after a checkpoint
def test_run_whose_environment_failed_goes_on_where_it_was(algo, at, tmp_path):
    own = TINY if algo == "sac" else dict(hidden=(8,), rollout=4)
    settings = dict(algo=algo, steps=60, num_envs=1, eval_every=20, eval_episodes=1, verbose=False, **own)
    Fails.at, Fails.steps = 0, 0
    bisac.train(Fails, out=tmp_path / "straight", checkpoint_every=30, **settings)
    Fails.at, Fails.steps = at, 0
    with pytest.raises(RuntimeError, match="the simulator is gone"):
        bisac.train(Fails, out=tmp_path / "torn", checkpoint_every=30, **settings)
    assert bisac.load(tmp_path / "torn")
    assert (tmp_path / "torn" / "learning_curve.png").exists()
    Fails.at = 0
    bisac.resume(tmp_path / "torn", env=Fails, verbose=False)
    assert fingerprint(tmp_path / "torn") == fingerprint(tmp_path / "straight")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_run_cleanly(number, tmp_path, monkeypatch):
    at_each_step(monkeypatch, lambda step: signal.raise_signal(number) if step == 30 else None)
    settings = Settings(steps=10_000, num_envs=1, eval_every=20, eval_episodes=1, out=tmp_path / "x")
    *_, finished = start(Counter, SAC(**TINY), settings)
    (outcome,) = finished.outcomes
    assert outcome.stopped_by == number
    assert [row["step"] for row in outcome.rows] == [20.0]
    assert RunFolder(tmp_path / "x").policy.exists()
    assert load_file(RunFolder(tmp_path / "x").policy)


def test_python_interface_passes_ctrl_c_on_after_saving(tmp_path, monkeypatch):
    at_each_step(monkeypatch, lambda step: signal.raise_signal(signal.SIGINT) if step == 30 else None)
    with pytest.raises(KeyboardInterrupt):
        bisac.train(Counter, out=tmp_path / "x", **SHORT)
    assert bisac.load(tmp_path / "x")
