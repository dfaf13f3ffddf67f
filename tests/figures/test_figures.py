"""Each figure as a user asks for it, on tiny checkpoints."""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from forms import VDN_A
from gymnasium import spaces
from probe_envs import CorrelatedBandit, Shaped
from small_runs import host_collector

import bisac
from bisac.algos import SAC, BidirectionalSAC, ForwardSAC
from bisac.cli import run
from bisac.collect.learning import current_policy
from bisac.figures import FIGURES, vdna
from bisac.figures.marginal_errors import correlation
from bisac.figures.panels import log_ticks
from bisac.figures.sources import read_sources
from bisac.nets.normalisation import fixed
from bisac.runs.checkpoint.checkpoints import Checkpoints
from bisac.runs.checkpoint.contents import load_learned
from bisac.runs.checkpoint.manifest import read_manifest
from bisac.runs.config import to_config
from bisac.runs.record import Record
from bisac.runs.settings import Settings

TINY = dict(hidden=(8,), embedding=(4,), subnetwork=(6,), batch_size=16, learning_starts=16, replay_size=200)
COARSE = ["--states", "3", "--intervals", "20"]
ALGORITHMS = {
    "joint": BidirectionalSAC(decomposition="joint", **VDN_A, **TINY),
    "scaled": BidirectionalSAC(normalise_observations=True, **VDN_A, **TINY),
    "four": BidirectionalSAC(**VDN_A, **TINY),
    "normalised": BidirectionalSAC(**VDN_A | dict(critic_norm="batch"), **TINY),
    "distilled": BidirectionalSAC(**TINY),
    "sac": SAC(**TINY),
    "forward": ForwardSAC(**TINY),
}


def four_dimensional():
    return Shaped(action_space=spaces.Box(-1.0, 1.0, (4,)))


def save_untrained(out, algo, env):
    """Two checkpoints of a run that has random networks and a random memory: learning would take long to compile."""
    collector, draws = host_collector(algo, env), np.random.default_rng(0)
    algo, saved = collector.request.algo, collector.snapshot(collector.start(), 0)
    rows = jax.tree.map(lambda leaf: jnp.asarray(draws.uniform(-1, 1, leaf.shape), leaf.dtype),
                        saved.learning.replay.storage)  # fmt: skip
    learning = eqx.tree_at(lambda t: t.replay.storage, saved.learning, rows)
    out.mkdir()
    checkpoints, record = Checkpoints(out / "checkpoints"), Record(progress="step,eval_return\n")
    config = to_config(collector.spec.env_id, algo, Settings(num_envs=1).settled(algo))
    for step in (30, 60):
        policy = current_policy(algo, collector.spec, learning)
        checkpoints.save(saved._replace(learning=learning, step=step), record, config, policy)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run folders by name, made when first asked for."""
    folder = tmp_path_factory.mktemp("runs")

    def make(name):
        out = folder / name
        if name in ALGORITHMS and not out.exists():
            save_untrained(out, ALGORITHMS[name], four_dimensional if name == "four" else CorrelatedBandit)
        elif not out.exists():
            every = 30 if name == "residual" else 0
            settings = dict(steps=60, eval_every=60, eval_episodes=1, checkpoint_every=every, verbose=False)
            bisac.train(CorrelatedBandit, out=out, **settings, **VDN_A, **TINY)
        return str(out)

    return make


def drawn(arguments, tmp_path, capsys):
    """The numbers that a command left, and what it said."""
    assert run(["figure", *arguments, "--out", str(tmp_path / "new" / "out")]) == 0
    files = {path.suffix: path for path in (tmp_path / "new" / "out").iterdir()}
    assert set(files) == {".png", ".pdf", ".json"}
    assert files[".png"].read_bytes().startswith(b"\x89PNG")
    assert files[".pdf"].read_bytes().startswith(b"%PDF")
    content = json.loads(files[".json"].read_text())
    assert content["figure"] == arguments[0]
    return content["numbers"], capsys.readouterr().out


def test_figure_alone_lists_them(capsys):
    assert run(["figure"]) == 0
    listed = capsys.readouterr().out
    for name, kind in FIGURES.items():
        assert name in listed
        assert " ".join(kind.__doc__.split()[:4]) in " ".join(listed.split())


def test_checkpoint_is_read_without_its_environment(runs):
    path = Path(runs("residual"), "checkpoints", "step-000000000060")
    learned = load_learned(read_manifest(path))
    assert learned.spec.env_id == "CorrelatedBandit"
    assert learned.memory.obs.shape == (60, 1)
    assert np.ptp(learned.memory.action) > 0.5
    policy = bisac.load(path)
    obs = np.zeros((1, 1), np.float32)
    action = learned.algo.actor(learned.agent)(jnp.asarray(obs)).mode()
    np.testing.assert_allclose(policy.predict(obs)[0], action, rtol=1e-6)


def test_gradient(tmp_path, capsys):
    numbers, said = drawn(["gradient", "--epochs", "300", "--seeds", "3", "--learning-rate", "0.02"], tmp_path, capsys)
    low, high = numbers["reverse_kl_of_descent"]["final_range"]
    assert low <= numbers["reverse_kl_of_descent"]["final_median"] <= high
    assert numbers["reverse_kl_of_projection"] < 1e-6 < high
    assert "KL of the forward projection" in said


def test_marginals_of_normalised_critics_are_those_at_running_moments(runs, tmp_path, capsys):
    """And what is told of values is in the environment's rewards."""
    (source, *_) = read_sources((Path(runs("normalised")),), "marginals")
    obs, action = source.batch(5, 0).obs, source.batch(5, 0).action
    learner = source.state.critic
    np.testing.assert_allclose(source.critic(obs, action), fixed(learner.model, learner.moments)(obs, action))
    numbers, _ = drawn(["marginals", runs("distilled"), *COARSE, "--samples", "4000"], tmp_path, capsys)
    assert numbers["checkpoints"][0]["alpha"] == pytest.approx(0.2 * source.unit)
    assert numbers["checkpoints"][0]["truth"] == "quadrature"


def test_a_joint_critic_is_its_marginals_and_what_they_miss(runs):
    (source, *_) = read_sources((Path(runs("distilled")),), "marginals")
    obs, action = source.batch(5, 0).obs, source.batch(5, 0).action
    separable, rest = source.critic.parts(obs, action)
    np.testing.assert_allclose(separable + rest, source.state.critic.fixed(obs, action), rtol=1e-5)
    curves = source.critic.marginals.curves(obs, action.ravel())[0]  # (act, batch, point)
    sums = [sum(curves[i, row, row * action.shape[1] + i] for i in range(action.shape[1])) for row in range(5)]
    np.testing.assert_allclose(separable, np.broadcast_to(sums, separable.shape), atol=1e-6)


def test_marginals_at_two_checkpoints(runs, tmp_path, capsys):
    numbers, said = drawn(["marginals", runs("joint"), *COARSE, "--samples", "4000"], tmp_path, capsys)
    assert [(n["decomposition"], n["step"]) for n in numbers["checkpoints"]] == [("joint", 30), ("joint", 60)]
    for n in numbers["checkpoints"]:
        assert n["truth"] == "quadrature"
        assert len(n["per_dimension"]["mean_error"]) == 2
        assert 0.0 <= n["over_all"]["total_variation"] < 0.5
        # A critic that has not learned is nearly flat beside a temperature of one: sampling it is easy.
        assert n["effective_samples"]["least"] > 1000
        check = n["importance_sampling_against_quadrature"]["where_effective"]
        assert check["mean_error"] < 0.1
        assert check["total_variation"] < 0.1
        assert n["std_over_actions"]["u"] > 0.0
    assert "joint, 60 steps" in said


def test_runs_are_told_apart(runs):
    both = read_sources((Path(runs("residual")), Path(runs("joint"))), "marginals")
    assert [source.label for source in both] == [
        "residual, 30 steps", "residual, 60 steps", "joint, 30 steps", "joint, 60 steps"
    ]  # fmt: skip
    alike = read_sources((Path(runs("joint")), Path(runs("joint"), "checkpoints", "step-000000000030")), "marginals")
    assert [source.label for source in alike] == [
        "joint, 30 steps (joint)", "joint, 60 steps (joint)", "joint, 30 steps (step-000000000030)"
    ]  # fmt: skip


def test_marginals_of_one_checkpoint_in_four_dimensions(runs, tmp_path, capsys):
    checkpoint = f"{runs('four')}/checkpoints/step-000000000060"
    numbers, _ = drawn(["marginals", checkpoint, *COARSE, "--samples", "500"], tmp_path, capsys)
    (n,) = numbers["checkpoints"]
    assert n["truth"] == "importance sampling"
    assert len(n["per_dimension"]["std_correlation"]) == 4
    assert "importance_sampling_against_quadrature" not in n


@pytest.mark.parametrize("name", ["residual", "scaled", "distilled"])
def test_projection(name, runs, tmp_path, capsys):
    numbers, said = drawn(["projection", runs(name), *COARSE, "--batch", "8"], tmp_path, capsys)
    assert [n["step"] for n in numbers["checkpoints"]] == [30, 60]
    for n in numbers["checkpoints"]:
        forward = n["target_mean"]["kl_q_pi"]["quartiles"]
        # No Gaussian is nearer in this direction than the one with the target's own moments.
        assert all(forward["exact_projection"][1] <= values[1] + 1e-4 for values in forward.values())
        assert forward["projection_actor_step"] != forward["start"] != forward["sac_step"]
        assert all(value > -1e-3 for values in n["target_min"]["kl_pi_q"]["quartiles"].values() for value in values)
        assert 0.0 <= n["target_min"]["kl_pi_q"]["projection_nearer_than_sac_step"] <= 1.0
    assert "the projection is nearer in" in said


def test_vdna(tmp_path, capsys, monkeypatch):
    def fitted(target, keys, scale, penalty, decomposition, width, steps, learning_rate, grid):
        """The truth, with a little of what is uniform: test_vdna.py has the fit itself, which takes long to compile."""
        truth = np.asarray(vdna.true_marginals(target, grid))
        mixed = np.stack([(1.0 - 0.1 * i) * truth + 0.1 * i / truth.shape[-1] for i in range(len(keys))])
        return vdna.Fit(jnp.asarray(mixed), *jnp.full((3, len(keys)), width / 100.0))

    monkeypatch.setattr(vdna, "fit", fitted)
    numbers, said = drawn(["vdna", "--dims", "2", "--seeds", "2"], tmp_path, capsys)
    assert list(numbers) == [
        "unimodal, independent", "unimodal, correlation 0.7", "bimodal, independent", "bimodal, correlation 0.7"
    ]  # fmt: skip
    low, high = numbers["bimodal, correlation 0.7"]["joint, U 256 wide"]["total_variation"]["range"]
    assert low == pytest.approx(0.0, abs=1e-6)
    assert 0.02 < high < 0.1
    assert "total variation" in said


def test_curves(runs, tmp_path, capsys):
    numbers, said = drawn(["curves", runs("residual")], tmp_path, capsys)
    assert [(g["label"], g["steps"]) for g in numbers["groups"]] == [("Bidirectional SAC", [60])]
    assert "no band" in said


BAD_INPUT = [
    (["shapes"], "there is no figure 'shapes'; there are gradient, marginals"),
    (["gradient", "--target", "0", "-1"], "--target must be a mean and a positive standard deviation"),
    (["gradient", "--seeds", "0"], "--seeds must be at least 1"),
    (["marginals"], "'bisac figure marginals' needs one RUN or more"),
    (["marginals", "nowhere"], "no run folder or checkpoint at nowhere"),
    (["marginals", "RUN:unsaved"], "holds no checkpoint; train with --checkpoint-every"),
    (
        ["marginals", "RUN:sac"],
        "has no marginals (its algorithm is sac); train bisac, a Forward SAC, or sac with --critic vdn-a",
    ),
    (["marginals", "RUN:residual", "--states", "100"], "remembers 30 states"),
    (["marginals", "RUN:residual", "RUN:four"], "different tasks (CorrelatedBandit, Shaped)"),
    (["marginals", "RUN:residual", "--intervals", "11"], "--intervals must be even"),
    (["projection", "RUN:four"], "has 4 action dimensions; the divergences are by quadrature"),
    (["projection", "RUN:forward", "--batch", "8", "--states", "3"], "forward-sac, which has no actor network"),
    (["projection", "RUN:residual", "--states", "9", "--batch", "8"], "--states must be at most --batch"),
    (["vdna", "--correlation", "1"], "--correlation must be between -0.50 and 1"),
    (["curves"], "'bisac figure curves' needs one RUN or more"),
    (["curves", "nowhere"], "no run folder at nowhere"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_INPUT, ids=[" ".join(words) for words, _ in BAD_INPUT])
def test_bad_input_gets_one_sentence(arguments, message, runs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [runs(word.removeprefix("RUN:")) if word.startswith("RUN:") else word for word in arguments]
    capsys.readouterr()
    assert run(["figure", *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_correlation_against_numpy():
    x, y = np.random.default_rng(0).normal(size=(2, 20, 3)).astype(np.float32)
    expected = [np.corrcoef(x[:, i], y[:, i])[0, 1] for i in range(3)]
    np.testing.assert_allclose(correlation(jnp.asarray(x), jnp.asarray(y)), expected, rtol=1e-5)
    assert np.isnan(correlation(jnp.zeros((4, 1)), jnp.asarray(y[:4, :1]))).all()


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.16, 5.1, [0.2, 0.5, 1.0, 2.0, 5.0]),
        (0.006, 300.0, [0.01, 0.1, 1.0, 10.0, 100.0]),
        (0.01, 1e7, [0.01, 1.0, 100.0, 1e4, 1e6]),
    ],
)
def test_an_axis_of_ratios_has_a_few_round_ticks(low, high, ticks):
    assert log_ticks(low, high) == pytest.approx(ticks)
