import pytest

from bisac.algos import REGISTRY, SAC, algorithm_name, make_algorithm
from bisac.errors import BisacError


@pytest.mark.parametrize("name", REGISTRY)
def test_an_algorithm_is_known_by_the_name_that_made_it(name):
    algo = make_algorithm(name, {"gamma": 0.5})
    assert (algorithm_name(algo), algo.gamma) == (name, 0.5)
    assert algo == REGISTRY[name](gamma=0.5)


def test_hyperparameters_replace_those_of_a_given_algorithm():
    assert make_algorithm(SAC(utd=2.0), {"gamma": 0.5}) == SAC(utd=2.0, gamma=0.5)


@pytest.mark.parametrize(
    ("algo", "hyperparameters", "sentence"),
    [
        ("sack", {}, "there is no algorithm 'sack'; there are bisac, sac, "),
        ("sac", {"gama": 0.5}, r"SAC has no hyperparameter 'gama'; did you mean gamma\?"),
        ("sac", {"zzz": 0.5}, "SAC has no hyperparameter 'zzz'; it has gamma, "),
        (SAC(), {"epsilon": 0.1}, "SAC has no hyperparameter 'epsilon'"),
    ],
)
def test_what_is_not_known_is_told_with_what_is(algo, hyperparameters, sentence):
    with pytest.raises(BisacError, match=sentence):
        make_algorithm(algo, hyperparameters)
