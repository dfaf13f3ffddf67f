"""Where a search looks: what the algorithms say, and what a user types."""

import dataclasses

import pytest

from bisac.algos import REGISTRY, make_algorithm
from bisac.algos.search import Choice, Range
from bisac.errors import BisacError
from bisac.tuning.space import default_space, from_json, make_space, parse_dimension, to_json


@pytest.mark.parametrize("name", REGISTRY)
def test_every_algorithm_takes_all_that_its_own_space_has_and_starts_inside_it(name):
    algo = make_algorithm(name, {})
    space, settled = default_space(algo), algo.settled()
    assert len(space) >= 4
    for key, dimension in space.items():
        for value in dimension.samples:
            dataclasses.replace(algo, **{key: value}).settled().check_num_envs(8)
        assert getattr(settled, key) in dimension, key
        assert from_json(to_json(dimension)) == dimension


def test_the_extremes_go_together():
    for name in REGISTRY:
        algo = make_algorithm(name, {})
        for end in (0, -1):
            values = {key: dimension.samples[end] for key, dimension in default_space(algo).items()}
            dataclasses.replace(algo, **values).check_num_envs(8)


def test_what_a_form_of_the_algorithm_refuses_is_not_searched():
    assert "tau" not in default_space(make_algorithm("sac", {}))
    assert "tau" in default_space(make_algorithm("sac", {"critic_norm": "none"}))


def test_fixed_settings_are_left_out_and_typed_ones_come_in():
    space = make_space(
        make_algorithm("sac", {"gamma": 0.9}), "sac", ["gamma"], ["utd=0.5,1", "critic_lr=1e-5:1e-2:log"]
    )
    assert "gamma" not in space
    assert space["utd"] == Choice((0.5, 1))
    assert space["critic_lr"] == Range(1e-5, 1e-2, log=True)


def test_a_range_of_whole_numbers_has_no_others():
    whole = Range(64, 256, whole=True)
    assert [value for value in (64, 100, 0.5, 100.5, 300) if value in whole] == [64, 100]
    assert 0.2 in Range(0, 1)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("batch_size=64:256", Range(64, 256, whole=True)),
        ("gamma=0:1", Range(0, 1)),
        ("policy_delay=1:4", Range(1, 4, whole=True)),
        ("hidden=64x64,128", Choice(((64, 64), (128,)))),
        ("actor-lr=1e-4:1e-3", Range(1e-4, 1e-3)),
        ("normalise_observations=true,false", Choice((True, False))),
    ],
)
def test_ranges_and_choices_are_read_as_typed(text, found):
    name, dimension = parse_dimension("sac", text)
    assert (name, dimension) == (text.partition("=")[0].replace("-", "_"), found)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("gama=0.9,0.99", "did you mean gamma"),
        ("gamma", "must be name=value"),
        ("gamma=0.9", "two values or more"),
        ("gamma=0.99:0.9", "up to a larger one"),
        ("gamma=0:0.9:log", "begins above 0"),
        ("gamma=0.9:0.99:lin", "LOW:HIGH:log"),
        ("gamma=0.9:2", "in \\[0, 1\\]"),
        ("tau=0.01,0.1", "no targets"),
        ("batch_size=300,200", "is set for all"),
    ],
)
def test_what_cannot_be_searched_is_told(text, problem):
    with pytest.raises(BisacError, match=problem):
        make_space(make_algorithm("sac", {}), "sac", ["batch_size"], [text])
