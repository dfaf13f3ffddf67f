"""Environments that raise, hang, give what is no number or of another shape, or die as processes."""

import os
import shutil
import signal
import time
import warnings

import numpy as np
from outcomes import Outcome
from probe_envs import Counter
from small_runs import SHORT, SMALL, fingerprint

import bisac
from bisac.envs.host import asynchronous


class Faulty(Counter):
    """An environment that does something else at one of its steps or resets, and is well again afterwards."""

    act, at, resets, taken = None, 0, False, 0

    def step(self, action):
        """Act, or do what is wrong."""
        cls = type(self)
        cls.taken += not cls.resets
        result = super().step(action)
        return cls.act(result) if cls.taken == cls.at and not cls.resets else result

    def reset(self, *, seed=None, options=None):
        """Begin an episode, or do what is wrong."""
        cls = type(self)
        cls.taken += cls.resets
        obs, info = super().reset(seed=seed, options=options)
        return (cls.act((obs, 0.0, False, False, {}))[0], info) if cls.taken == cls.at and cls.resets else (obs, info)


def _raise(_):
    raise RuntimeError("the robot's arm is stuck")


def _with(index, value):
    return lambda result: (*result[:index], value, *result[index + 1 :])


def _die(number):
    return lambda _: os.kill(os.getpid(), number)


MISTAKES = {
    "raises": _raise,
    "observes NaN": _with(0, np.array([np.nan], np.float32)),
    "observes an array of another shape": _with(0, np.zeros(2, np.float32)),
    "observes nothing (None)": _with(0, None),
    "is rewarded by infinity": _with(1, np.inf),
    "is rewarded by two numbers": _with(1, np.zeros(2)),
}
DEATHS = {
    "exits": lambda _: os._exit(3),
    "is killed": _die(signal.SIGKILL),
    "crashes (SIGSEGV)": _die(signal.SIGSEGV),
}


def _make(act, at, resets):
    """A class of its own, which cloudpickle sends whole to another process; called as the one without faults."""
    return type("Counter", (Faulty,), {"act": staticmethod(act), "at": at, "resets": resets, "__module__": "__main__"})


def faulty_run(out, act, at, resets=False, **settings):
    """Train in an environment that fails, then go on in one that does not; returns what was said."""
    said = ""
    try:
        bisac.train(_make(act, at, resets), out=out, **SMALL, **SHORT | settings)
    except Exception as error:
        said = str(error)
    bisac.resume(out, env=Counter, verbose=False)
    return said


def environment_campaign(folder):
    """Each mistake at several steps and resets, and each death of a process that an environment lives in."""
    place = folder / "environments"
    bisac.train(Counter, out=place / "straight", **SMALL, **SHORT)
    expected = fingerprint(place / "straight")
    kinds = [(f"environment that {name}", act, {}) for name, act in MISTAKES.items()]
    apart = "environment in a process of its own that"
    kinds += [(f"{apart} {name}", act, {"backend": "async"}) for name, act in DEATHS.items()]
    for name, act, settings in kinds:
        moments = [(at, False) for at in ((7, 31, 77) if settings else (1, 7, 21, 31, 40, 58, 77, 99))]
        moments += [] if settings or "reward" in name else [(at, True) for at in (2, 5, 9)]
        times = silent = lost = 0
        said = ""
        for at, resets in moments:
            told = faulty_run(place / "run", act, at, resets, **settings)
            said = said or told
            times, silent = times + 1, silent + (not told)
            lost += fingerprint(place / "run") != expected
            shutil.rmtree(place / "run")
        print(f"{name}: {times} times, {silent} silent, {lost} lost", flush=True)
        result = f"saved as before that step; resumed, {times - lost} of {times} end equal"
        yield Outcome(name, times, result, lost, silent, said)
    yield _hanging(place, expected)


def _hanging(place, expected):
    """An environment that does not answer: told after a while, and ended from outside."""
    patience, asynchronous.PATIENCE = asynchronous.PATIENCE, 2.0
    times = silent = lost = 0
    said = ""
    try:
        for at in (7, 31, 77):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                faulty_run(place / "run", _hang, at, backend="async")
            told = [str(each.message) for each in caught if "has not answered" in str(each.message)]
            said = said or (told[0] if told else "")
            times, silent = times + 1, silent + (not told)
            lost += fingerprint(place / "run") != expected
            shutil.rmtree(place / "run")
    finally:
        asynchronous.PATIENCE = patience
    print(f"hanging: {times} times, {silent} silent, {lost} lost", flush=True)
    result = f"told while it hangs; killed from outside, resumed, {times - lost} of {times} end equal"
    return Outcome("environment in a process of its own that hangs", times, result, lost, silent, said)


def _hang(_):
    """Hang until somebody kills the process: here, itself, after a while."""
    time.sleep(5.0)
    os.kill(os.getpid(), signal.SIGKILL)
