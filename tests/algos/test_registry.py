import pytest

from bisac.algos import REGISTRY, SAC, BidirectionalSAC, algorithm_from_json, algorithm_name, make_algorithm
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


@pytest.mark.parametrize(
    ("algo", "hyperparameters", "sentence"),
    [
        ("bisac", {"patience": 2**31}, "--patience must be below 2,147,483,648, got 2147483648"),
        ("sac", {"policy_delay": 3 * 10**9}, "--policy-delay must be below"),
        ("sac", {"utd": 1e10}, "--utd must be positive, and 1,000 at most"),
        ("bisac", {"epsilon": 10**400}, "--epsilon must be below"),
        ("bisac", {"epsilon_half_life": 10**10}, "--epsilon-half-life must be below"),
        ("ppo", {"learning_rate": 10**30}, "--learning-rate must be below"),
        ("sac", {"actor_lr": "linear:1e-3:1e-4:3000000000"}, "--actor-lr must be"),
    ],
)
def test_numbers_beyond_the_machines_are_refused(algo, hyperparameters, sentence):
    with pytest.raises(BisacError, match=sentence):
        make_algorithm(algo, hyperparameters)


def test_what_an_older_file_does_not_say_is_what_was_then():
    assert algorithm_from_json("sac", {"gamma": 0.5}) == SAC(gamma=0.5, critic_norm="none").settled()
    kept = dict(epsilon_half_life="none", margin="none", quorum=0.1, patience=0)
    classic = BidirectionalSAC(critic="vdn-a", critic_norm="none", **kept)
    assert algorithm_from_json("bisac", {"refinement": "penalty", "hidden": [256, 256]}) == classic.settled()
    with pytest.raises(BisacError, match=r"--refinement correction is no longer part of bisac; its version 0\.3 was"):
        algorithm_from_json("bisac", {"refinement": "correction"})
