"""Data sets from arrays and files: what they become in memory, and what is refused, in one sentence each."""

import h5py
import jax
import numpy as np
import pytest
from gymnasium import spaces

import bisac
from bisac.algos import SAC
from bisac.collect import replay
from bisac.collect.dataset import Dataset
from bisac.collect.sampling import draw_batch
from bisac.collect.scaling import Scaling
from bisac.replay import from_arrays, read_dataset
from bisac.storage import pack_arrays
from bisac.types import Spec

SPEC = Spec("Box", 1, (-2.0, 0.0), (2.0, 1.0))


def arrays(count=6):
    """Two episodes in the environment's own units: the first is truncated, the second terminates."""
    rng = np.random.default_rng(0)
    obs, action = np.arange(count + 1.0)[:, None], rng.uniform((-2.0, 0.0), (2.0, 1.0), (count, 2))
    return dict(
        observation=obs[:-1],
        action=action,
        reward=rng.normal(size=count),
        next_observation=obs[1:] + 100.0 * (np.arange(count) == 2)[:, None],
        terminated=np.arange(count) == count - 1,
    )


def test_rows_are_what_a_memory_holds():
    given = arrays()
    rows = from_arrays(**given).fitted(SPEC)
    np.testing.assert_allclose(rows.action, given["action"] / (2.0, 0.5) - (0.0, 1.0), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(rows.discount, [1, 1, 1, 1, 1, 0])
    np.testing.assert_array_equal(rows.reward, given["reward"].astype(np.float32))
    assert {leaf.dtype for leaf in jax.tree.leaves(rows)} == {np.dtype(np.float32)}


def test_the_share_of_a_batch_and_n_steps_of_each_kind():
    shown = replay.full_of(from_arrays(**arrays()).fitted(SPEC))
    own = replay.full_of(from_arrays(**arrays() | dict(reward=np.full(6, 50.0))).fitted(SPEC))
    plain = Scaling.init(1, 1, observations=False, rewards=False)
    r, draw = arrays()["reward"], jax.jit(draw_batch, static_argnums=(0, 5))
    sums = [r[0] + 0.5 * r[1], r[1] + 0.5 * r[2], r[2], r[3] + 0.5 * r[4], r[4] + 0.5 * r[5], r[5]]
    for fraction, n_step, count in ((0.0, 1, 0), (0.25, 2, 10), (1.0, 1, 40)):
        algo = SAC(batch_size=40, demo_fraction=fraction, n_step=n_step, gamma=0.5)
        batch = jax.device_get(draw(algo, own, shown, plain, jax.random.key(0), 1))
        assert batch.reward.shape == (40,)
        theirs = batch.reward < 49.0
        assert theirs.sum() == count
        expected = np.array(r if n_step == 1 else sums)[batch.obs[theirs, 0].astype(int)]
        np.testing.assert_allclose(batch.reward[theirs], expected, rtol=1e-5)


@pytest.mark.parametrize("form", ["npz", "hdf5", "h5 with other names"])
def test_files_hold_the_same(form, tmp_path):
    path, given = tmp_path / f"data.{form.split()[0]}", arrays()
    if form == "npz":
        np.savez(path, **given, infos=np.zeros(3))
    else:
        names = {name: name for name in given}
        if "names" in form:
            names = {name: f"{name}s" for name in given} | {"terminated": "terminals"}
        with h5py.File(path, "w") as file:
            file.create_group("metadata")
            for name, array in given.items():
                file[names[name]] = array
    assert read_dataset(str(path)).digest == from_arrays(**given).digest


@pytest.mark.filterwarnings("ignore")  # of Minari's own
def test_minari_data_sets_hold_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    import minari

    given, buffers = arrays(), []
    for first, last in ((0, 3), (3, 6)):
        part = slice(first, last)
        observations = np.concatenate([given["observation"][part], given["next_observation"][last - 1 : last]])
        truncated = np.arange(first, last) == 2
        buffers.append(
            minari.data_collector.EpisodeBuffer(
                observations=list(observations.astype(np.float32)),
                actions=list(given["action"][part].astype(np.float32)),
                rewards=list(given["reward"][part]),
                terminations=list(given["terminated"][part]),
                truncations=list(truncated),
            )
        )
    box, actions = spaces.Box(-200.0, 200.0, (1,)), spaces.Box(np.float32([-2, 0]), np.float32([2, 1]))
    minari.create_dataset_from_buffers("probe/test-v0", buffers, observation_space=box, action_space=actions)
    assert read_dataset("probe/test-v0").digest == from_arrays(**given).digest
    with pytest.raises(bisac.BisacError, match="neither a file nor a local Minari data set probe/none-v0"):
        read_dataset("probe/none-v0")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (dict(reward=np.zeros(5)), "reward has 5 rows, and observation has 6"),
        (dict(observation=np.zeros(6)), r"observation must have a vector in each row; its shape is \(6,\)"),
        (dict(next_observation=np.zeros((6, 2))), r"must have the shape of observation, \(6, 1\)"),
        (dict(reward=[0, 1, np.nan, 3, 4, 5]), "reward is not finite in row 2"),
        (dict(observation=np.full((6, 1), 1e300)), "observation is not finite in row 0"),
        (dict(terminated=np.full(6, 0.5)), "terminated must be true or false"),
        (dict(action=[["a"]] * 6), "action is not an array of numbers"),
        (dict(action=np.full((6, 2), 1.5)), r"action 1 of row 0 is 1.5, outside the box of Box, \[0, 1\]"),
        (dict(action=np.zeros((6, 3))), "has 1 observations and 3 actions in a row, which does not fit Box"),
        ({name: value[:0] for name, value in arrays().items()}, "is empty"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(changes, sentence):
    with pytest.raises(bisac.BisacError, match=sentence):
        from_arrays(**arrays() | changes).fitted(SPEC)


def test_files_that_hold_no_data_set(tmp_path):
    (tmp_path / "text.npz").write_text("no archive")
    (tmp_path / "text.hdf5").write_text("no archive")
    (tmp_path / "text.csv").write_text("1, 2")
    np.savez(tmp_path / "poor.npz", obs=np.zeros((2, 1)))
    np.savez(tmp_path / "pickled.npz", **arrays() | dict(reward=np.array([{}] * 6)))
    for name, sentence in {
        "none.npz": "there is no data set at",
        "text.npz": "cannot be read as a file of NumPy's: it is no archive",
        "text.hdf5": "cannot be read as an HDF5 file",
        "text.csv": "must be a file .npz, .hdf5 or .h5",
        "poor.npz": "has no array action; it has obs",
        "pickled.npz": "holds Python objects, which are never loaded",
    }.items():
        with pytest.raises(bisac.BisacError, match=sentence):
            read_dataset(str(tmp_path / name))
    with pytest.raises(bisac.BisacError, match=r"is not a data set of bisac's"):
        Dataset.from_bytes(pack_arrays({}, {}), "forged")
