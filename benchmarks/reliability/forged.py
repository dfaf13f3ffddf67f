"""Files of strangers in the place of ours, of every kind that bisac reads beside a checkpoint's."""

import random

from outcomes import Outcome
from strangers import kinds_of

from bisac.plotting import statistics
from bisac.report import html


def forged_campaign(folder, rounds):
    """Foreign files of every kind, so many of each; nothing may end in anything but our own error."""
    place = folder / "forged"
    place.mkdir()
    reps, plotly = statistics.REPS, html._plotly
    statistics.REPS, html._plotly = 5, lambda: ""  # what is shown of a sweep is not what is tried here
    try:
        for kind in kinds_of(place):
            kind.try_out(rounds, random.Random(kind.name))
            used, refused, other = kind.tally["used"], kind.tally["refused"], len(kind.problems)
            print(f"{kind.name}: {refused} refused, {used} used, {other} others {kind.problems[:3]}", flush=True)
            result = f"{refused:,} refused with a sentence, {used:,} whole enough to use, {other:,} other errors"
            what = f"{kind.name}: mutated at random or forged"
            yield Outcome(what, rounds, result, lost=other, sentence=kind.sentence)
    finally:
        statistics.REPS, html._plotly = reps, plotly
