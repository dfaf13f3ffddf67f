"""A crash, a full disk, a broken one and one that may not be written, at every single call that changes a file."""

import shutil

from faults import broken_disk, counted_calls, crash_and_go_on, fail_and_go_on, forbidden_disk, full_disk
from outcomes import Outcome
from small_runs import fingerprint

FAULTS = {
    "disk full (ENOSPC)": full_disk,
    "disk broken (EIO)": broken_disk,
    "write not permitted (EACCES)": forbidden_disk,
}


def disk_campaign(folder):
    """Let each call fail in each way, once in a run, which must go on or end with a sentence, and end equal."""
    calls = counted_calls(folder / "disk")
    expected, times = fingerprint(folder / "disk"), len(calls)
    equal = 0
    for nth in range(1, times + 1):
        crash_and_go_on(folder / "crash", nth)
        equal += fingerprint(folder / "crash") == expected
        shutil.rmtree(folder / "crash")
    print(f"dead at each write: {equal} of {times} equal", flush=True)
    what = "process dead from one of its writes on, at every one of them"
    yield Outcome(what, times, f"resumed, {equal} end equal", times - equal)
    for name, fault in FAULTS.items():
        equal = ended = silent = 0
        said = ""
        for nth in range(1, times + 1):
            stopped, warned = fail_and_go_on(folder / "fail", nth, fault())
            ended += stopped
            silent += not (stopped or warned)
            said = said or next((text for text in warned if "could not be written" in text), "")
            equal += fingerprint(folder / "fail") == expected
            shutil.rmtree(folder / "fail")
        result = (
            f"{times - ended - silent} went on with a warning, {ended} (at start or end) stopped with a sentence, "
            f"{silent} touched nothing that matters; {equal} end equal"
        )
        print(f"{name}: {result}", flush=True)
        yield Outcome(f"{name} at one write, at every one of them", times, result, times - equal, 0, said)
