"""A crash, a full disk and a broken one at every single call of a run that changes a file."""

import shutil

from faults import broken_disk, counted_calls, crash_and_go_on, fail_and_go_on, full_disk
from small_runs import fingerprint


def disk_campaign(folder):
    """A crash, a full disk and a broken one at every single call of a run that changes a file."""
    calls = counted_calls(folder / "disk")
    expected = fingerprint(folder / "disk")
    equal = 0
    for nth in range(1, len(calls) + 1):
        crash_and_go_on(folder / "crash", nth)
        equal += fingerprint(folder / "crash") == expected
        shutil.rmtree(folder / "crash")
    yield "process dead from one of its writes on, at every one of them", len(calls), f"resumed, {equal} end equal"
    for fault, name in ((full_disk(), "disk full (ENOSPC)"), (broken_disk(), "disk broken (EIO)")):
        equal = ended = 0
        for nth in range(1, len(calls) + 1):
            stopped, _ = fail_and_go_on(folder / "fail", nth, fault)
            ended += stopped
            equal += fingerprint(folder / "fail") == expected
            shutil.rmtree(folder / "fail")
        went_on = len(calls) - ended
        result = (
            f"{went_on} went on with a warning, {ended} (at start or end) stopped with a sentence; {equal} end equal"
        )
        yield f"{name} at one write, at every one of them", len(calls), result
        print(f"{name}: {result}", flush=True)
