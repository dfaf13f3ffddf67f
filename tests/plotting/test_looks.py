"""Labels, colours and lines of contestants."""

import bisac
from bisac.plotting.looks import Look, assign_looks
from bisac.plotting.style import COLOURS, LABELS, LINE_STYLES
from bisac.sweeps.contestants import parse_contestant


def looks_of(*texts):
    contestants = [parse_contestant(text) for text in texts]
    looks = assign_looks((contestant.algo, *contestant.words) for contestant in contestants)
    assert list(looks) == [contestant.name for contestant in contestants]
    return looks


def test_every_algorithm_has_a_look_of_its_own():
    assert set(bisac.algos.REGISTRY) <= set(COLOURS)
    assert set(COLOURS) == set(LINE_STYLES) == set(LABELS)
    assert len(set(COLOURS.values())) == len(set(LINE_STYLES.values())) == len(COLOURS)


def test_unknown_variants_have_looks_of_their_own():
    texts = ["sac", "bisac:spread=kl", "bisac:spread=kl,epsilon=1", "sac:critic_lr=1e-5",
             "sac:entropy_target=-3,critic=vdn-a"]  # fmt: skip
    found = looks_of(*texts)
    assert [look.label for look in found.values()] == [
        "SAC",
        "Bidirectional SAC, kl",
        "Bidirectional SAC, kl, epsilon=1",
        "SAC, critic_lr=1e-05",
        "SAC, entropy_target=-3, vdn-a",
    ]
    assert len({look.colour for look in found.values()}) == 5
    correction = assign_looks([("bisac", "correction")])["bisac-correction"]  # of earlier sweeps
    assert correction.colour == COLOURS["bisac-correction"]
    assert looks_of("sac:critic=vdn-a,gamma=0.5")["sac-vdn-a-gamma=0.5"].label == "SAC, VDN-a critic, gamma=0.5"
    many = looks_of(*(f"bisac:epsilon={value}" for value in range(30)))
    assert len({(look.colour, look.line) for look in many.values()}) == 30


def test_algorithm_that_nobody_knows_is_called_by_its_name():
    assert assign_looks([("mine", "wide")])["mine-wide"].label == "mine, wide"


def test_colours_and_lines_in_a_browsers_words():
    assert Look("x", "#0a10ff", (0, (4, 1.5))).dash == "8px,3px"
    assert Look("x", "#0a10ff", "-").dash == "solid"
    assert Look("x", "#0a10ff", "-").faint(0.5) == "rgba(10,16,255,0.5)"
