"""Exported policies against `predict`, whose networks are other code: every kind of actor, every form."""

import json
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pytest
from jax import export as jax_export
from policies import POLICIES, SMALL, SPEC, fresh, used

import bisac
from bisac.algos import SAC, TD3, ForwardSAC
from bisac.envs.task import Task
from bisac.nets.actors import Actor, ProjectedActor
from bisac.policies.export import standalone
from bisac.policies.export.describe import named_arrays
from bisac.policies.policy import Policy, _act
from bisac.types import Spec

DIRECT = dict(chebyshev_points=0, simpson_intervals=20, encoder=())
KINDS = {
    "Gaussian": SAC(critic_norm="none", activation="silu", normalise_observations=True, **SMALL),
    "Gaussian, normalised": POLICIES["sac"],
    "deterministic, normalised": TD3(critic_norm="batch", hidden=(8, 8), activation="tanh"),
    "not squashed": POLICIES["ppo"],
    "projected": ForwardSAC(critic_norm="none", **SMALL),
    "projected, normalised": ForwardSAC(critic_norm="batch", **SMALL),
    "projected, direct": ForwardSAC(critic_norm="batch", **SMALL | DIRECT),
}


@cache
def kind(name):
    """A policy with this kind of actor."""
    return used(fresh(KINDS[name].settled()))


@pytest.fixture(params=KINDS)
def policy(request):
    return kind(request.param)


WIDTH = np.array([4.0, 10.0])


def observations(count=10_000):
    """Ordinary ones, and a hundred extreme ones at the end."""
    obs = np.random.default_rng(0).normal(size=(count, 3)) * 5.0 + 2.0
    obs[-100:] *= np.repeat([30.0, 1e6], 50)[:, None]
    return obs.astype(np.float32)


def limits(policy, obs, answers, folder):
    """How far each form may lie from `predict`: 1e-5 of the action's range.

    At extreme observations the values that a projection takes differences of are so large that `predict` itself lies
    further from what float64 gives. There a form may be off by a few times that; at a million, where nothing is left
    of the answer, by anything within the box.
    """
    limit = np.full((len(obs), 1), 1e-5)
    if isinstance(policy.actor, ProjectedActor):
        exact = standalone.Policy(folder / "p.npz")
        exact.constants = {k: v.astype(float) if v.dtype == np.float32 else v for k, v in exact.constants.items()}
        own = np.abs((answers - exact.act(obs)) / WIDTH)[-100:-50].max()
        assert own < 1e-4
        limit[-100:-50], limit[-50:] = max(1e-5, 4.0 * own), 1.0
    return limit


def forms(policy, folder, **options):
    """The policy in each form, as a function of observations and perhaps noise."""
    policy.export(folder / "p.onnx", **options)
    policy.export(folder / "p.stablehlo", **options)
    policy.export(folder / "p.npz", **options)
    session = onnxruntime.InferenceSession(folder / "p.onnx")
    names = [value.name for value in session.get_inputs()]
    program = jax_export.deserialize(bytearray((folder / "p.stablehlo").read_bytes()))
    return {
        "onnx": lambda *inputs: session.run(None, dict(zip(names, inputs, strict=True)))[0],
        "stablehlo": lambda *inputs: np.asarray(program.call(*inputs)),
        "numpy": standalone.Policy(folder / "p.npz").act,
    }


def test_exported_policies_answer_as_predict_does(policy, tmp_path):
    obs = observations()
    expected = policy.predict(obs)[0]
    assert (expected[:-100].std(axis=0) > 1e-3 * WIDTH).all()
    acts = forms(policy, tmp_path)
    limit = limits(policy, obs, expected, tmp_path)
    for name, act in acts.items():
        assert (np.abs((act(obs) - expected) / WIDTH) < limit).all(), name


def test_one_observation_is_answered_as_the_compiled_batch_is(policy):
    obs = observations()
    one = np.stack([policy.predict(each)[0] for each in obs[:-100:100]])
    # NumPy and compiled code sum in another order; a projection's quadrature makes 1.2e-6 of float32's rounding.
    assert np.abs((one - policy.predict(obs)[0][:-100:100]) / WIDTH).max() < 2e-6


def test_stochastic_policies_take_noise_as_an_input(policy, tmp_path):
    obs, key = observations()[:1000], jax.random.key(5)
    noise = np.asarray(jax.random.normal(key, (1000, 2)))  # as the actor itself draws it
    expected = policy.spec.to_box(np.asarray(_act(policy.actor, jnp.asarray(obs), key, True)))
    assert (
        np.abs(expected - policy.spec.to_box(np.asarray(_act(policy.actor, jnp.asarray(obs), key, False)))).max() > 0.01
    )
    policy.export(tmp_path / "p.onnx", stochastic=True)
    policy.export(tmp_path / "p.npz", stochastic=True)
    session = onnxruntime.InferenceSession(tmp_path / "p.onnx")
    inputs = {"observation": obs, "noise": noise}
    assert np.abs((session.run(None, inputs)[0] - expected) / WIDTH).max() < 1e-5
    assert np.abs((standalone.Policy(tmp_path / "p.npz").act(obs, noise) - expected) / WIDTH).max() < 1e-5


def test_onnx_is_readable_sound_and_says_what_it_is(tmp_path):
    policy = Policy(SPEC, POLICIES["forward-sac"], kind("projected").actor, step=1234)
    for opset in (13, 18, 21):
        policy.export(tmp_path / "p.onnx", opset=opset, metadata={"config_sha256": "abc"})
        model = onnx.load(tmp_path / "p.onnx")
        onnx.checker.check_model(model, full_check=True)
        assert model.opset_import[0].version == opset
        session = onnxruntime.InferenceSession(tmp_path / "p.onnx")
        np.testing.assert_allclose(
            session.run(None, {"observation": np.ones((2, 3), np.float32)})[0],
            policy.predict(np.ones((2, 3)))[0],
            rtol=1e-5,
        )
    assert all(node.name for node in model.graph.node)
    assert len({node.name for node in model.graph.node}) == len(model.graph.node)
    known = {entry.key: entry.value for entry in model.metadata_props}
    assert known["environment"] == "Some-v0"
    assert known["algorithm"] == "forward-sac"
    assert known["step"] == "1234"
    assert known["config_sha256"] == "abc"
    assert json.loads(known["action_high"]) == [2.0, 10.0]
    policy.export(tmp_path / "p.stablehlo")
    beside = json.loads((tmp_path / "p.stablehlo.json").read_text())
    assert beside["inputs"] == {"observation": ["batch", 3]}
    assert beside["platforms"] == ["cpu", "cuda", "tpu"]
    assert {**beside, "config_sha256": "abc"}.items() >= known.items()


def test_equal_policies_give_equal_files(tmp_path):
    for name in ("a.onnx", "a.npz"):
        kind("Gaussian").export(tmp_path / name)
        first = (tmp_path / name).read_bytes()
        kind("Gaussian").export(tmp_path / name)
        assert (tmp_path / name).read_bytes() == first


@pytest.mark.parametrize("name", ["state", "observation"])  # the second is that of every goal task
def test_dictionaries_of_arrays_are_named_inputs(name, tmp_path):
    layout = ("dict", ("goal", name), (("box", (3,)), ("box", (2, 2))))
    spec = Spec("Some-v0", 7, (-2.0, 0.0), (2.0, 10.0), layout=layout)
    policy, random = fresh(POLICIES["sac"], spec), np.random.default_rng(0)
    flat = random.normal(size=(50, 7)).astype(np.float32)
    parts = {"goal": flat[:, :3], name: flat[:, 3:].reshape(-1, 2, 2)}
    expected = policy.predict(flat)[0]
    np.testing.assert_array_equal(policy.predict(parts)[0], expected)
    one = {part: array[7] for part, array in parts.items()}
    np.testing.assert_allclose(policy.predict(one)[0], expected[7], rtol=1e-5)
    acts = forms(policy, tmp_path)
    np.testing.assert_allclose(acts["onnx"](*parts.values()), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(acts["stablehlo"](*parts.values()), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(acts["numpy"](parts), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(acts["numpy"](one), expected[7], rtol=1e-5, atol=1e-6)


class Goals(gym.Env):
    def __init__(self, **more):
        boxes = {"state": gym.spaces.Box(-1.0, 1.0, (2, 2)), "goal": gym.spaces.Box(-9.0, 9.0, (3,))}
        self.observation_space = gym.spaces.Dict(boxes | more)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (2,))


def test_arrays_of_a_dictionary_are_named_in_the_order_in_which_it_is_flattened():
    named = named_arrays(Task(Goals).spec(Task(Goals).make()))
    assert named == {"state": (2, 2), "goal": (3,)}
    space = Goals().observation_space
    observation = space.sample()
    in_order = np.concatenate([np.ravel(observation[name]) for name in named])
    np.testing.assert_array_equal(in_order, gym.spaces.flatten(space, observation))
    for other in ({"mode": gym.spaces.Discrete(2)}, {"action": gym.spaces.Box(-1.0, 1.0, (2,))}):
        task = Task(partial(Goals, **other))
        assert named_arrays(task.spec(task.make())) == {}


ALONE = """
import sys
sys.path[:0] = sys.argv[1:]
import numpy as np, pendulum
for name in ("jax", "bisac", "onnx"):
    try:
        __import__(name)
    except ImportError:
        continue
    sys.exit(f"{name} is there")
print(repr(pendulum.act([1.0, 2.0, 3.0]).tolist()))
"""


def test_numpy_form_needs_numpy_alone(tmp_path):
    policy = kind("Gaussian, normalised")
    assert policy.export(tmp_path / "pendulum.npz") == [tmp_path / "pendulum.npz", tmp_path / "pendulum.py"]
    assert len((tmp_path / "pendulum.py").read_text().splitlines()) < 100
    only = tmp_path / "only"
    only.mkdir()
    packages = Path(np.__file__).parents[1]
    for part in ("numpy", "numpy.libs"):
        if (packages / part).exists():
            (only / part).symlink_to(packages / part)
    command = [sys.executable, "-I", "-S", "-c", ALONE, str(tmp_path), str(only)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    np.testing.assert_allclose(json.loads(answer.stdout), policy.predict(np.array([1.0, 2.0, 3.0]))[0], rtol=1e-5)


def test_numpy_form_says_what_it_takes(tmp_path):
    policy = kind("Gaussian")
    policy.export(tmp_path / "p.npz", stochastic=True)
    act = standalone.Policy(tmp_path / "p.npz").act
    with pytest.raises(ValueError, match=r"takes observation, noise; got observation\."):
        act(np.zeros(3))
    with pytest.raises(ValueError, match=r"noise must have the shape \(2,\)"):
        act(np.zeros((4, 3)), np.zeros((3, 2)))


class Strange(Actor):
    def act(self, obs, key, explore):
        return jnp.zeros((len(obs), 2))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("p.tflite", {}, r"does not tell the format; there are onnx \(.onnx\), stablehlo"),
        ("p.onnx", {"format": "torch"}, "there is no format 'torch'"),
        ("folder", {"format": "onnx"}, "is a folder; say which file in it, such as .*policy.onnx"),
        ("missing/p.onnx", {}, "there is no folder"),
        ("p.onnx", {"opset": 5}, "opset must be from 13 to"),
        ("p.stablehlo", {"platforms": ("abacus",)}, "there is no platform 'abacus'"),
        ("p.py", {"format": "numpy"}, r"must end in \.npz"),
        ("a-b.npz", {}, "Python cannot import"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(name, options, message, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(bisac.BisacError, match=message):
        kind("Gaussian").export(tmp_path / name, **options)
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


def test_a_script_of_ones_own_is_not_overwritten(tmp_path):
    policy, script = kind("Gaussian"), tmp_path / "hopper.py"
    script.write_text("import bisac\n")
    with pytest.raises(bisac.BisacError, match=r"hopper\.py is not what bisac exported; move it away"):
        policy.export(tmp_path / "hopper.npz")
    assert script.read_text() == "import bisac\n"
    assert not (tmp_path / "hopper.npz").exists()
    script.unlink()
    for _ in range(2):  # its own, it does replace
        policy.export(tmp_path / "hopper.npz")
    assert script.read_text().startswith('"""A trained policy')


def test_actors_of_unknown_kinds_are_told(tmp_path):
    with pytest.raises(bisac.BisacError, match="of the kind Strange cannot be exported"):
        Policy(SPEC, POLICIES["sac"], Strange()).export(tmp_path / "p.onnx")


def test_full_disk_leaves_nothing_half_written(tmp_path, monkeypatch):
    policy, writes = kind("Gaussian"), []
    from bisac import storage

    def failing(path, offset, content):
        writes.append(path)
        if len(writes) % 2 == 0:
            raise OSError(28, "No space left on device")
        Path(path).write_bytes(content)

    monkeypatch.setattr(storage, "write_from", failing)
    with pytest.raises(bisac.BisacError, match=r"cannot be written to .*p\.py: No space left"):
        policy.export(tmp_path / "p.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("package", "file"), [("onnx", "p.onnx"), ("flatbuffers", "p.stablehlo")])
def test_missing_extra_is_told(package, file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(bisac.BisacError, match=r"pip install '\.\[export\]'"):
        kind("Gaussian").export(tmp_path / file)
