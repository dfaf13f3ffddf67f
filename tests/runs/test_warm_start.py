"""A run that starts from another's networks, and from its memory if told to: exactly those, and resumed to the bit."""

import jax
import numpy as np
import pytest
from gymnasium import spaces
from probe_envs import Counter
from small_runs import SHORT, SMALL, dying_at, fingerprint

import bisac
from bisac.algos.delay import Delay
from bisac.algos.learner import Learner
from bisac.cli.train import parse_train
from bisac.collect import host
from bisac.runs.checkpoint import contents
from bisac.runs.checkpoint.checkpoints import find_checkpoints
from bisac.runs.checkpoint.contents import load_learned
from bisac.runs.warm_start import WarmStart

SETTINGS = SMALL | SHORT | dict(normalise_observations=True)
QUIET = {name: value for name, value in SETTINGS.items() if name != "verbose"}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A run of 100 steps, of which the memory holds the last 40."""
    out = tmp_path_factory.mktemp("first") / "run"
    bisac.train(Counter, out=out, **SETTINGS)
    return out


def models(agent):
    """The networks of an agent, its moments and averages, without what counts updates."""
    learners = jax.tree.leaves(agent, is_leaf=lambda node: isinstance(node, Learner | Delay))
    parts = [(part.model, part.moments, part.average) if isinstance(part, Learner) else part for part in learners]
    parts = [part for part in parts if not isinstance(part, Delay)]
    return [np.asarray(leaf) for leaf in jax.tree.leaves(parts)]


def test_networks_are_the_other_runs_and_optimisers_are_fresh(first, tmp_path, monkeypatch):
    learned, random, learn = load_learned(find_checkpoints(first)[-1]), [], host.learn_and_act
    monkeypatch.setattr(host, "learn_and_act", lambda *given: random.append(given[-1]) or learn(*given))
    monkeypatch.setattr(host, "begin_learning", None)  # the unit of rewards, and so of values, stays
    run = bisac.start(Counter, out=tmp_path / "run", init=first, with_replay=True, **QUIET)
    events = iter(run)
    next(event for event in events if isinstance(event, bisac.Advanced))
    for mine, theirs in zip(models(run.agent), models(learned.agent), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert int(run.agent.critic.opt_state[0].count) == 0
    assert float(run._session.state.flat.whole.scaling.observations.count) > 100
    memory = run._session.state.flat.whole.replay
    held = np.asarray(memory.storage.reward)  # the first step has overwritten the oldest
    np.testing.assert_array_equal(held[1:], learned.memory.reward[1:])
    assert (int(memory.size), int(memory.position)) == (40, 1)
    next(event for event in events if isinstance(event, bisac.Advanced) and event.step == 20)
    assert random == [False] * 20, "it acts by its policy from the first step on"


def test_the_memory_is_not_read_unless_it_is_wanted(first, monkeypatch):
    monkeypatch.setattr(contents, "_read_piece", None)
    assert load_learned(find_checkpoints(first)[-1], with_memory=False).memory is None
    command, _ = parse_train(["Counter-v0", "--algo", "sac", "--init", str(first)])
    assert WarmStart(command.hyperparameters, command.run).rows(1, 40) == 0


@pytest.mark.parametrize("with_replay", [False, True])
def test_a_resume_is_exact(with_replay, first, tmp_path):
    changes = SETTINGS | dict(init=first, with_replay=with_replay, seed=5)
    bisac.train(Counter, out=tmp_path / "straight", **changes)
    for crash in (15, 50):  # before the first checkpoint, and after it
        with dying_at(crash):
            bisac.train(Counter, out=tmp_path / f"torn {crash}", **changes)
        bisac.resume(tmp_path / f"torn {crash}", env=Counter, verbose=False)
        assert fingerprint(tmp_path / f"torn {crash}") == fingerprint(tmp_path / "straight")


def test_bad_input_is_refused_before_anything_is_written(first, tmp_path):
    class Wide(Counter):
        observation_space = spaces.Box(-10.0, 10.0, (2,))

        def obs(self):
            return np.zeros(2, np.float32)

    young = tmp_path / "young"
    with pytest.warns(UserWarning, match="nothing will be learned"):
        bisac.train(Counter, out=young, **SETTINGS | dict(steps=10))
    for changes, sentence in (
        (dict(init=first, algo="td3"), "is a run of sac; a run of td3 cannot start from it"),
        (dict(init=first, env=Wide), r"trained on Counter \(1 observations, 2 actions\), which does not fit Wide"),
        (dict(init=first, hidden=(16,)), r"other networks: .*weights.* is \(.*\) there and \(.*\) here"),
        (dict(init=first, activation="tanh"), "other networks: --activation is relu there and tanh here"),
        (dict(init=first, normalise_observations=False), r"is \(.*\) there and missing here"),
        (dict(init=first / "policy.safetensors"), "is a file: a policy without its critics"),
        (dict(init=tmp_path / "none"), "there is no run folder"),
        (dict(init=young), "has not learned anything yet"),
        (dict(with_replay=True), "name it by --init"),
    ):
        with pytest.raises(bisac.BisacError, match=sentence):
            bisac.train(**dict(env=Counter) | SETTINGS | changes, out=tmp_path / "run")
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("critic_norm", ["none", "batch"])
def test_what_is_not_learned_is_the_new_runs_own(critic_norm, tmp_path):
    settings = SETTINGS | dict(algo="td3", critic_norm=critic_norm)
    bisac.train(Counter, out=tmp_path / "first", **settings)
    noisy = dict(out=tmp_path / "run", init=tmp_path / "first", exploration_noise=0.4)
    policy = bisac.train(Counter, **settings | noisy)
    assert policy.actor.actor.noise == 0.4
    assert bisac.load(tmp_path / "run").actor.actor.noise == 0.4


def test_a_fixed_temperature_is_the_new_runs_own(first, tmp_path):
    with bisac.start(Counter, out=tmp_path / "run", init=first, temperature=0.05, **QUIET) as run:
        next(event for event in run if isinstance(event, bisac.Advanced))
        state = run.agent
        assert float(state.alpha * state.reward_unit) == pytest.approx(0.05)


def test_flags():
    command, _ = parse_train(["Hopper-v5", "--init", "runs/first", "--with-replay"])
    assert (str(command.run.init), command.run.with_replay) == ("runs/first", True)
