"""A run as its user's own loop sees it: events, own columns, success, and one environment that exists once."""

import warnings

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import RecordEpisodeStatistics
from probe_envs import Counter
from small_runs import SHORT, SMALL, dying_at, fingerprint

import bisac
from bisac.collect.collector import success_of
from bisac.runs.log import read_progress

QUIET = {name: value for name, value in (SMALL | SHORT).items() if name != "verbose"} | {"critic_norm": "none"}


class Arm(Counter):
    """An environment of which there must not be two. It tells the episode's energy, and succeeds at every other one."""

    made = 0

    def __init__(self):
        Arm.made += 1
        self.resets, self.closed = 0, False

    def first_state(self):
        self.resets += 1
        self.energy = 0.0
        return super().first_state()

    def step(self, action):
        self.energy += float(np.square(action).sum())
        *rest, _ = super().step(action)
        return *rest, {"energy": self.energy, "is_success": bool(self.length % 2), "self": self}

    def close(self):
        self.closed = True


def rows_of(folder):
    return read_progress((folder / "progress.csv").read_text())


def logging(run, stop=None):
    """The user's loop: log each episode's energy; stop at an event of that kind and step."""
    for event in run:
        if isinstance(event, bisac.EpisodeEnded):
            run.log({"energy": event.info["energy"], "robot/long": np.float32(event.episode_length)})
        if stop and isinstance(event, stop[0]) and event.step == stop[1]:
            break


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A run in one environment that was never interrupted, and that environment."""
    env, before = Arm(), Arm.made
    folder = tmp_path_factory.mktemp("arm") / "straight"
    run = bisac.start(env, out=folder, **QUIET)
    with pytest.warns(UserWarning, match="take turns with training") as told:
        logging(run)
    assert len(told) == 1
    assert (Arm.made, env.closed) == (before, False), "a second environment was made, or this one closed"
    return run, env


def test_own_columns_and_success_are_logged(straight):
    run, _ = straight
    rows = rows_of(run.folder)
    assert len(rows) == 3
    for row in rows:
        assert 0 < row["energy"] <= 2.0 * row["episode_length"]
        assert row["robot/long"] == pytest.approx(row["episode_length"])
        assert 0 <= row["success_rate"] <= 1
        assert row["eval_success_rate"] in (0.0, 0.5, 1.0)
    assert list(rows[0])[-4:] == ["eval_success_rate", "success_rate", "energy", "robot/long"]
    content = next(run.folder.glob("events.out.*")).read_bytes()
    assert b"robot/long" in content
    assert b"eval/success_rate" in content


def test_columns_are_the_means_and_the_spread_of_what_was_told(tmp_path):
    run, expected, trained = bisac.start(Arm(), out=tmp_path / "run", **QUIET | {"eval_episodes": 3}), [], []

    def watch():
        for event in run:
            if isinstance(event, bisac.EpisodeEnded):
                trained.append(bool(event.info["is_success"]))
            if isinstance(event, bisac.Evaluated):
                expected.append((np.mean(trained), np.mean(event.successes), np.std(event.returns)))
                trained.clear()

    with pytest.warns(UserWarning, match="take turns with training"):
        watch()
    names = ("success_rate", "eval_success_rate", "eval_return_std")
    found = [[row[name] for name in names] for row in rows_of(run.folder)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert len({rate for rate, *_ in expected} - {0.5}) > 0  # else failures could have been counted


def test_evaluation_waits_for_the_episode_to_end(straight):
    run, env = straight
    rows = rows_of(run.folder)
    assert all(0 <= row["step"] - due < 5 for row, due in zip(rows, (40, 80, 100), strict=True))
    assert run.step == rows[-1]["step"]
    assert env.resets > 0


def test_the_run_can_be_looked_at_while_it_goes_and_afterwards(tmp_path):
    run = bisac.start(Counter, out=tmp_path / "run", **QUIET)
    with pytest.raises(bisac.BisacError, match="iterate over it first"):
        run.policy  # noqa: B018
    kept = []
    with run:
        for event in run:
            if isinstance(event, bisac.Evaluated):
                assert np.isnan(event.success_rate)
                kept.append((run.step, run.policy, run.agent))
    assert [step for step, _, _ in kept] == [40, 80, 100]
    actions = [policy.predict([0.5])[0] for _, policy, _ in kept]  # the first is not overwritten by what follows
    assert not np.array_equal(actions[0], actions[2])
    np.testing.assert_array_equal(run.policy.predict([0.5])[0], bisac.load(run.folder).predict([0.5])[0])
    with pytest.raises(bisac.BisacError, match=r"iterated over already; bisac.reopen\('.*run'\) goes on"):
        list(run)


@pytest.mark.parametrize("stop", [(bisac.EpisodeEnded, 42), (bisac.Evaluated, 42), (bisac.Advanced, 40)])
def test_a_run_in_one_environment_resumes_exactly_wherever_it_is_left(straight, stop, tmp_path):
    first = int(rows_of(straight[0].folder)[0]["step"])
    kind, step = stop[0], first if stop[1] == 42 else stop[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging(bisac.start(Arm(), out=tmp_path / "run", **QUIET), (kind, step))
    logging(bisac.reopen(tmp_path / "run", env=Arm()))
    assert fingerprint(tmp_path / "run") == fingerprint(straight[0].folder)


def test_another_environment_to_evaluate_in_is_asked_for_again(tmp_path):
    with dying_at(50):
        bisac.train(Arm(), eval_env=Arm(), out=tmp_path / "run", verbose=False, **QUIET)
    with pytest.raises(bisac.BisacError, match=r"evaluated in an environment of .*Arm, .*eval_env=\.\.\."):
        bisac.resume(tmp_path / "run", env=Arm(), verbose=False)
    judge = Arm()
    bisac.resume(tmp_path / "run", env=Arm(), eval_env=judge, verbose=False)
    assert [row["step"] for row in rows_of(tmp_path / "run")] == [40, 80, 100]
    assert judge.resets == 4  # two episodes in each of two evaluations


def test_learning_can_wait_for_the_end_of_episodes(tmp_path):
    changes = QUIET | dict(learn_at="episode", num_envs=2)
    run, busy, before = bisac.start(Counter, out=tmp_path / "run", **changes), [], None
    for event in run:
        if isinstance(event, bisac.EpisodeEnded):
            busy.append(event.step)
        if isinstance(event, bisac.Advanced):
            updates = run._session.state.updates
            if before is not None and updates != before:
                assert event.step in busy, "learned in the middle of an episode"
                assert updates == event.step - 12, "not all that was due"
            before = updates
    assert before > 60
    with dying_at(50):
        bisac.train(Counter, out=tmp_path / "torn", verbose=False, **changes)
    bisac.resume(tmp_path / "torn", env=Counter, verbose=False)
    assert fingerprint(tmp_path / "torn") == fingerprint(tmp_path / "run")
    steps = {row["step"] for row in rows_of(tmp_path / "run")}
    assert steps <= set(busy), "evaluated in the middle of an episode"


def test_no_past_action_is_sent_again_to_what_may_be_hardware(tmp_path):
    class Robot(Arm):
        sent = 0

        def step(self, action):
            self.sent += 1
            return super().step(action)

    ended, robot = 0, Robot()
    for event in bisac.start(Robot(), eval_env=Arm(), out=tmp_path / "run", **QUIET, learn_at="episode"):
        ended = event.step if isinstance(event, bisac.EpisodeEnded) else ended
        if isinstance(event, bisac.Advanced) and event.step > max(50, ended):
            break
    with pytest.warns(UserWarning, match="new episode"):
        bisac.resume(tmp_path / "run", env=robot, eval_env=Arm(), verbose=False)
    last = rows_of(tmp_path / "run")[-1]
    assert robot.sent == last["step"] - event.step > 0
    assert last["inexact_resumes"] == 1


def test_fresh_rollouts_in_one_environment_resume_exactly(tmp_path):
    changes = dict(algo="a2c", hidden=(8,), rollout=16, steps=96, eval_every=32, eval_episodes=1, checkpoint_every=16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bisac.train(Arm(), out=tmp_path / "straight", verbose=False, **changes)
        with dying_at(64):
            bisac.train(Arm(), out=tmp_path / "torn", verbose=False, **changes)
    bisac.resume(tmp_path / "torn", env=Arm(), verbose=False)
    assert fingerprint(tmp_path / "torn") == fingerprint(tmp_path / "straight")
    assert [row["step"] for row in rows_of(tmp_path / "torn")] == [32, 64, 96]


class Drifts(Arm):
    """A robot: no seed brings it back to where it was."""

    def first_state(self):
        super().first_state()
        return float(self.resets)


def test_environment_that_cannot_be_seeded_begins_anew_and_it_is_recorded(tmp_path):
    robot = Drifts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with dying_at(50):
            bisac.train(robot, out=tmp_path / "run", verbose=False, **QUIET)
    with pytest.raises(bisac.BisacError, match=r"was trained on an environment of .*Drifts, .* env=\.\.\."):
        bisac.resume(tmp_path / "run", verbose=False)
    with pytest.warns(UserWarning, match="does not repeat itself when seeded: 1 of 1"):
        bisac.resume(tmp_path / "run", env=robot, verbose=False)
    assert rows_of(tmp_path / "run")[-1]["inexact_resumes"] == 1


def test_statistics_of_wrappers_arrive_on_every_backend(tmp_path):
    for backend in ("sync", "async"):
        short = QUIET | dict(steps=12, backend=backend)
        run = bisac.start(lambda: RecordEpisodeStatistics(Arm()), out=tmp_path / backend, **short)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nothing is learned in so few steps
            ended = [event for event in run if isinstance(event, bisac.EpisodeEnded)]
        assert ended
        for event in ended:
            assert event.info["episode"]["l"] == event.episode_length
            assert ("self" in event.info) == (backend == "sync"), "what no other process can read is left there"


@pytest.mark.parametrize(
    ("info", "success"),
    [({}, None), ({"success": 1.0}, True), ({"is_success": np.array([False]), "success": True}, False),
     ({"is_success": "yes"}, None), ({"is_success": [1, 2]}, None)],
)  # fmt: skip
def test_success_is_read_as_environments_tell_it(info, success):
    assert success_of(info) is success


def test_bad_input_is_refused_in_a_sentence(tmp_path):
    class Discrete(Arm):
        action_space = spaces.Discrete(3)

    class Wide(Arm):
        observation_space = spaces.Box(-1.0, 1.0, (2,))

    for changes, sentence in (
        (dict(env=Arm(), num_envs=2), "is one environment, so num_envs must be 1, not 2"),
        (dict(env=Arm(), backend="async"), "stepped where it is"),
        (dict(env=Arm(), env_args={"g": 1}), "environment arguments are for an id"),
        (dict(env=Discrete()), "needs continuous actions"),
        (dict(env=Arm(), eval_env=Wide()), r"eval_env is Wide \(2 observations, 2 actions\), and does not fit Arm"),
    ):
        with pytest.raises(bisac.BisacError, match=sentence):
            bisac.train(**QUIET | changes, out=tmp_path / "run", verbose=False)
        assert not (tmp_path / "run").exists()
    run = bisac.start(Counter, out=tmp_path / "run", **QUIET)
    events = iter(run)
    assert next(event for event in events if isinstance(event, bisac.Advanced)).step == 1
    for values, sentence in (
        ({"step": 1}, "a column that bisac fills itself"),
        ({"critic_loss": 1}, "a column that bisac fills itself"),
        ({"a\nb": 1}, "printable"),
        ({"energy": np.zeros(2)}, "no number"),
    ):
        with pytest.raises(bisac.BisacError, match=sentence):
            run.log(values)
    del events
    assert max((tmp_path / "run" / "checkpoints").glob("step-*")).name.endswith("01"), "saved as it was left"
    with pytest.raises(bisac.BisacError, match="nothing more can be logged"):
        run.log({"energy": 1.0})
