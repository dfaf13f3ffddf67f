"""Environments compiled into the training step: learning, killing, resuming, runs side by side."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import warnings
from contextlib import closing
from fractions import Fraction

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import point_mass
import pytest
from point_mass import PointMass
from small_runs import Crash, fingerprint

import bisac
from bisac.algos import PPO, REGISTRY, SAC, TD3
from bisac.collect.collector import Request
from bisac.collect.device import DeviceCollector
from bisac.collect.evaluate import HELD_OUT_STREAM
from bisac.collect.learning import DivergedError
from bisac.collect.off_policy import updates_due
from bisac.collect.playing import play
from bisac.collect.stepping import first_place, step_all
from bisac.envs.device.sources import device_task
from bisac.runs.events import Evaluated, Finished, Saved, Started, Warned
from bisac.runs.folder import RunFolder
from bisac.runs.log import read_log
from bisac.runs.resume import resume
from bisac.runs.run import Run
from bisac.runs.settings import Settings
from bisac.runs.start import start

ALGO = dict(hidden=(16, 16), batch_size=32, learning_starts=64, replay_size=400, critic_norm="none", gamma=0.9)
SETTINGS = dict(steps=480, num_envs=4, eval_every=160, eval_episodes=4, checkpoint_every=80)
MASS = PointMass()
"""One object: what is compiled for it is compiled once."""


def collector(algo, seeds=(3,), num_envs=4, env=MASS, batched=None):
    return DeviceCollector(device_task(env, ()), Request(algo.settled(), seeds, num_envs, 10_000, 3), batched)


def advanced(gathering, steps, state=None):
    state = state or gathering.start()
    while state.step < steps:
        state, _ = gathering.advance(state, steps)
    return state


def test_a_warm_start_is_taken_over_and_acts_by_its_policy_at_once():
    given = []

    def init(learning, num_envs):
        given.append((learning, num_envs))
        return eqx.tree_at(lambda t: t.key, learning, jax.random.key(77))

    request = Request(SAC(**ALGO).settled(), (3,), 4, 10_000, 3, init=init)
    gathering = DeviceCollector(device_task(MASS, ()), request)
    state = gathering.start()
    assert len(given) == 1
    assert given[0][1] == 4
    assert state.flat.whole.key == jax.random.key(77)
    assert not any(gathering._plan(request.algo, state, 200)[1])
    assert all(collector(SAC(**ALGO))._plan(request.algo, state, 60)[1])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (dict(algo=SAC(learn_at="episode").settled()), "one on the device never does"),
        (dict(eval_env="Pendulum-v1"), "leave eval_env out"),
    ],
)
def test_what_the_device_cannot_serve_is_refused(changes, sentence):
    request = Request(SAC(**ALGO).settled(), (3,), 4, 10_000, 3)
    with pytest.raises(bisac.BisacError, match=sentence):
        DeviceCollector(device_task(MASS, ()), dataclasses.replace(request, **changes))


def events(out, seeds, **settings):
    return start(MASS, SAC(**ALGO), Settings(**SETTINGS | settings, out=out), seeds=seeds)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    out = tmp_path_factory.mktemp("device") / "run"
    with pytest.warns(UserWarning, match="the policy learns from 'state', not from privileged_state"):
        bisac.train(MASS, algo="sac", seed=3, out=out, verbose=False, **SETTINGS, **ALGO)
    return out


def test_device_run_leaves_what_every_run_leaves(straight):
    rows = read_log(RunFolder(straight))
    assert [row["step"] for row in rows] == [160, 320, 480]
    assert all(row["episode_length"] == point_mass.EPISODE for row in rows)
    assert bisac.load(straight).predict(np.zeros(2))[0].shape == (1,)
    assert sorted(path.name for path in (straight / "checkpoints").glob("step-*")) == [
        "step-000000000400",
        "step-000000000480",
    ]


def test_device_run_learns(tmp_path):
    longer = SETTINGS | {"steps": 3200, "eval_every": 1600, "checkpoint_every": 0, "eval_episodes": 16}
    algo = SAC(**ALGO | {"hidden": (32, 32), "replay_size": 4000, "actor_lr": 3e-3, "temperature": 0.01})
    *_, finished = start(MASS, algo, Settings(**longer, seed=0, out=tmp_path / "run"))
    # Resting wherever the episode begins costs the mean of 20 x^2: 6.7.
    assert finished.outcomes[0].rows[-1]["eval_return"] > -4.0


def test_killed_device_run_is_resumed_to_the_bit(straight, tmp_path):
    code = f"""
import os, signal, bisac
from point_mass import PointMass
from bisac.collect.device import DeviceCollector
advance = DeviceCollector.advance
def dying(self, state, until):
    if state.step >= 250:
        os.kill(os.getpid(), signal.SIGKILL)
    return advance(self, state, until)
DeviceCollector.advance = dying
bisac.train(PointMass(), algo="sac", seed=3, out={str(tmp_path / "torn")!r}, verbose=False, **{SETTINGS!r}, **{ALGO!r})
"""
    process = subprocess.run([sys.executable, "-c", code], cwd=point_mass.__file__.rpartition("/")[0], check=False)
    assert process.returncode == -signal.SIGKILL
    bisac.resume(tmp_path / "torn", env=MASS, verbose=False)
    assert fingerprint(tmp_path / "torn") == fingerprint(straight)


def test_runs_side_by_side_are_those_that_they_are_alone(straight, tmp_path):
    *told, finished = events(tmp_path / "whole", [3, 4])
    assert isinstance(finished, Finished)
    assert [outcome.folder.path.name for outcome in finished.outcomes] == ["seed3", "seed4"]
    assert [(event.run, event.step) for event in told if isinstance(event, Evaluated)] == [
        (run, step) for step in (160, 320, 480) for run in (0, 1)
    ]
    assert fingerprint(tmp_path / "whole" / "seed3") == fingerprint(straight)
    assert fingerprint(tmp_path / "whole" / "seed4") != fingerprint(straight)

    with closing(events(tmp_path / "torn", [3, 4])) as torn:
        for event in torn:
            if isinstance(event, Saved) and event.step >= 240:
                break
    folders = [tmp_path / "torn" / f"seed{seed}" for seed in (3, 4)]
    began = [event for event in resume([folders[0]], source=MASS) if isinstance(event, Started)]  # one alone
    began += [event for event in resume([folders[1]], source=MASS) if isinstance(event, Started)]
    assert [event.step for event in began] == [240, 240]
    for seed in (3, 4):
        assert fingerprint(tmp_path / "torn" / f"seed{seed}") == fingerprint(tmp_path / "whole" / f"seed{seed}")


@pytest.mark.parametrize("torn", ["before the first save", "a disk that failed for one of them"])
def test_runs_side_by_side_meet_again(torn, straight, tmp_path, monkeypatch):
    save, saves = Run.save, []

    def failing(self, snapshot, *rest):
        saves.append(snapshot.step)
        if torn.startswith("before") and len(saves) == 2:
            raise Crash
        if torn.startswith("a disk") and self.settings.seed == 4 and snapshot.step > 80:
            if snapshot.step > 240:
                raise Crash
            return [Warned("no space")]
        return save(self, snapshot, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "save", failing)
        with pytest.raises(Crash):
            list(events(tmp_path / "torn", [3, 4]))
    folders = [tmp_path / "torn" / f"seed{seed}" for seed in (3, 4)]
    began = [event.step for event in resume(folders, source=MASS) if isinstance(event, Started)]
    assert began == [0 if torn.startswith("before") else 80]
    assert fingerprint(tmp_path / "torn" / "seed3") == fingerprint(straight)


def test_a_run_that_lost_its_checkpoints_takes_no_other_with_it(tmp_path):
    list(events(tmp_path, [3, 4], steps=240))
    folders = [tmp_path / f"seed{seed}" for seed in (3, 4)]
    shutil.rmtree(folders[1] / "checkpoints")
    for path in ("policy.safetensors", "progress.csv"):
        (folders[1] / path).unlink()  # as if it had been killed before it was ever saved
    with pytest.raises(bisac.BisacError, match="were not saved at one step; resume each of them by itself"):
        list(resume(folders, steps=320, source=MASS))
    began = [event.step for event in resume([folders[0]], steps=320, source=MASS) if isinstance(event, Started)]
    assert began == [240]


def test_the_run_that_diverged_is_named_among_others(tmp_path, monkeypatch):
    def diverged(algo, learning, *_):
        if jnp.array_equal(learning.key, seen.setdefault("first", learning.key)):
            return
        raise DivergedError("training diverged: q became nan.")

    seen = {}
    monkeypatch.setattr("bisac.runs.session.check_sound", diverged)
    with pytest.raises(
        bisac.BisacError, match=r"/seed4: training diverged: q became nan\. 'bisac resume' goes on with"
    ):
        list(events(tmp_path, [3, 4], steps=80, checkpoint_every=80, eval_every=80))


def test_fresh_rollouts_on_the_device_resume_to_the_bit(tmp_path):
    rollouts = dict(algo="ppo", hidden=(8,), rollout=80, minibatches=4, epochs=2, seed=1, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        bisac.train(MASS, out=tmp_path / "whole", **SETTINGS, **rollouts)

    assert read_log(RunFolder(tmp_path / "whole"))[-1]["step"] == 480
    torn = tmp_path / "torn"
    settings = Settings(**SETTINGS, seed=1, out=torn)
    algo = PPO(hidden=(8,), rollout=80, minibatches=4, epochs=2)
    for event in start(MASS, algo, settings):
        if isinstance(event, Saved) and event.step >= 240:
            break
    bisac.resume(torn, env=MASS, verbose=False)
    assert fingerprint(torn) == fingerprint(tmp_path / "whole")


def test_each_step_is_the_environments_own():
    """Beside a loop that resets by itself: true last observations, time-outs that bootstrap, keys of their own."""
    env = PointMass(wall=0.9)  # near enough that some episodes terminate, and some are cut off
    task = device_task(env, ())
    place = first_place(task, 3, jax.random.key(5))
    step = jax.jit(lambda place, action: step_all(task, place, action))
    masses = [jax.tree.map(lambda leaf, i=i: leaf[i], place.env) for i in range(3)]
    actions = np.random.default_rng(0).uniform(-1, 1, (60, 3, 1)).astype(np.float32)
    lengths, firsts, terminated, cut = [0] * 3, [], 0, 0
    for action in actions:
        place, stepped = step(place, jnp.asarray(action))
        for i in range(3):
            after = env.step(masses[i], action[i])
            lengths[i] += 1
            over = bool(after.done)
            np.testing.assert_allclose(stepped.transition.next_obs[i], after.obs["state"], rtol=1e-5, atol=1e-6)
            assert float(stepped.transition.discount[i]) == 1.0 - over
            assert bool(stepped.ended[i]) == (over or lengths[i] == point_mass.EPISODE)
            masses[i] = after
            if stepped.ended[i]:
                assert int(stepped.length[i]) == lengths[i]
                terminated, cut, lengths[i] = terminated + over, cut + (not over), 0
                masses[i] = jax.tree.map(lambda leaf, i=i: leaf[i], place.env)
                firsts.append(float(masses[i].obs["state"][0]))
    assert terminated
    assert cut
    assert len(set(firsts)) == len(firsts)  # each episode from a key of its own


@pytest.mark.parametrize("utd", [0.0625, 0.29, 1 / 3, 1.0, 2.5])
def test_updates_due_are_counted_exactly(utd):
    algo = TD3(utd=utd, learning_starts=7)
    exact = {0.0625: Fraction(1, 16), 0.29: Fraction(29, 100), 1 / 3: Fraction(1, 3)}.get(utd, Fraction(utd))
    made = 0
    for step in range(8, 4000, 8):
        made += updates_due(algo, step, made)
        assert made == max(0, (step - 7) * exact.numerator // exact.denominator)


def test_many_environments_and_few_updates_compile_once():
    algo = TD3(**{k: v for k, v in ALGO.items() if k != "critic_norm"} | {"utd": 0.0625, "learning_starts": 10})
    gathering = collector(algo, num_envs=32)
    state = gathering.start()
    from bisac.collect.programs import learn_in_steps

    before = learn_in_steps._cache_size()
    for until in (32, 96, 100, 640):  # the first step of all environments is past the random ones
        state = advanced(gathering, until, state)
    assert learn_in_steps._cache_size() == before + 1
    assert state.updates == (640 - 10) // 16
    assert int(state.flat.whole.agent.updates) == state.updates


def test_evaluation_is_that_of_a_loop(straight):
    policy, task = bisac.load(straight), device_task(MASS, ())
    told = play(task, policy, 3, seed=9, stream=HELD_OUT_STREAM)
    keys = jax.random.split(jax.random.fold_in(jax.random.key(9), HELD_OUT_STREAM), 3)
    for index, key in enumerate(keys):
        mass, total = MASS.reset(jax.random.key_data(key)), 0.0
        for _ in range(point_mass.EPISODE):
            mass = MASS.step(mass, policy.predict(mass.obs["state"])[0])
            total += float(mass.reward)
        assert told.returns[index] == pytest.approx(total, rel=1e-4)
        assert told.lengths[index] == point_mass.EPISODE


def test_batched_runs_come_to_what_they_come_to_alone():
    """As accelerators run them; sums in a batched product have another order, hence the tolerance."""
    algo = SAC(**ALGO)
    together, alone = collector(algo, (3, 4), batched=True), collector(algo, (4,))
    states = advanced(together, 72), advanced(alone, 72)
    assert states[0].parts[0].place.started.shape == (2, 4)
    for leaf, other in zip(
        jax.tree.leaves(together.snapshot(states[0], 1)._replace(facts={})),
        jax.tree.leaves(alone.snapshot(states[1], 0)._replace(facts={})),
        strict=True,
    ):
        if not jnp.issubdtype(getattr(leaf, "dtype", jnp.int32), jax.dtypes.prng_key):
            np.testing.assert_allclose(leaf, other, rtol=1e-3, atol=1e-4)


def test_no_folder_is_written_where_another_of_them_holds_a_run(tmp_path):
    (tmp_path / "seed1").mkdir()
    (tmp_path / "seed1/config.json").write_text("{}")
    with pytest.raises(bisac.BisacError, match="seed1 holds a run already"):
        list(start(MASS, SAC(**ALGO), Settings(steps=10, out=tmp_path), seeds=[0, 1]))
    assert not (tmp_path / "seed0/config.json").exists()


@pytest.mark.parametrize("name", REGISTRY)
def test_counters_of_every_algorithm_stay_out_of_the_batch(name):
    """Whatever an algorithm counts must not depend on data: else its runs could not share the count."""
    algo = REGISTRY[name](hidden=(4,), **({"rollout": 8} if name in ("ppo", "a2c") else {"batch_size": 16})).settled()
    from bisac.collect import programs

    task = device_task(MASS, ())
    gathering = DeviceCollector(task, Request(algo, (0, 1), 2, 100, 1), batched=True)
    learning, place = gathering.shapes({})
    twice = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape), leaf.dtype), (learning, place))
    planned = (jnp.zeros(programs.CHUNK, jnp.int32), jnp.zeros(programs.CHUNK, bool), 1)
    program, rest = (
        (programs.learn_from_steps, (np.float32(1),)) if name in ("ppo", "a2c") else (programs.learn_in_steps, planned)
    )
    learned, _, _ = jax.eval_shape(lambda *arguments: program(task, algo, *arguments, *rest), *twice)
    assert jax.tree.map(lambda leaf: leaf.shape, learned) == jax.tree.map(lambda leaf: leaf.shape, twice[0])


def test_several_devices_share_the_seeds_and_change_no_bit(straight, tmp_path):
    """Four devices of a process of their own, of which each hears nothing of the others."""
    code = f"""
import jax, warnings
from point_mass import PointMass
from bisac.algos import SAC
from bisac.collect.side_by_side import grouped
from bisac.runs.settings import Settings
from bisac.runs.start import start
settings = Settings(**{SETTINGS!r}, out=__import__("pathlib").Path({str(tmp_path)!r}))
list(start(PointMass(), SAC(**{ALGO!r}), settings, seeds=[2, 3]))
assert len(jax.devices()) == 4
assert [group.device.id for group in grouped((5, 6, 7, 8, 9))] == [0, 1, 2, 3, 0]
assert [(group.device.id, group.seeds) for group in grouped((5, 6, 7, 8, 9, 10), batched=True)] == [
    (0, (5, 6)), (1, (7, 8)), (2, (9, 10))
]
"""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    environment = os.environ | {"XLA_FLAGS": flags}
    cwd = point_mass.__file__.rpartition("/")[0]
    subprocess.run([sys.executable, "-c", code], cwd=cwd, env=environment, check=True)
    assert fingerprint(tmp_path / "seed3") == fingerprint(straight)


class Failing(PointMass):
    """Gives what is no number, some steps on."""

    def step(self, state, action):
        after = super().step(state, action)
        return after._replace(reward=jnp.where(jnp.abs(after.obs["state"][0]) > 0.5, jnp.nan, after.reward))


def test_numbers_that_are_not_finite_are_told():
    gathering = collector(TD3(hidden=(8,), learning_starts=1000), env=Failing())
    with pytest.raises(DivergedError, match="Failing gave an observation or a reward that is not finite by step"):
        advanced(gathering, 900)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (dict(env=PointMass), "PointMass is a class; give one of its instances"),
        (dict(env=MASS, backend="async"), "PointMass is stepped on the device; leave out --backend async"),
        (dict(env=MASS, env_args={"g": 1}), "takes max_episode_steps and no other argument, got g"),
        (dict(env=MASS, env_args={"max_episode_steps": 0}), "max_episode_steps must be a whole number above 0"),
        (dict(env="classic/pendulun"), "there is no task 'classic/pendulun'; did you mean classic/pendulum"),
        (dict(env="classic/pendulum", env_args={"h": 1}), "cannot be made with h=1; it takes g and max_episode_steps"),
    ],
)
def test_what_a_device_task_cannot_use_is_refused(bad, sentence, tmp_path):
    with pytest.raises(bisac.BisacError, match=sentence):
        bisac.train(algo="sac", out=tmp_path / "run", verbose=False, **SETTINGS, **ALGO, **bad)
    assert not (tmp_path / "run").exists()
