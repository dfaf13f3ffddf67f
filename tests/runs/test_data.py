"""Runs that learn from several steps at once, as users start them: resumed to the bit."""

from probe_envs import Counter
from small_runs import SHORT, SMALL, dying_at, fingerprint

import bisac

SETTINGS = SMALL | SHORT | dict(critic_norm="none", num_envs=2)


def test_n_step_learns_otherwise_and_resumes_to_the_bit(tmp_path):
    for n in (1, 3):
        bisac.train(Counter, out=tmp_path / f"{n}", **SETTINGS, n_step=n)
    with dying_at(50):
        bisac.train(Counter, out=tmp_path / "torn", **SETTINGS, n_step=3)
    bisac.resume(tmp_path / "torn", env=Counter, verbose=False)
    torn, single, several = (fingerprint(tmp_path / name) for name in ("torn", "1", "3"))
    assert torn == several
    assert single["final policy.safetensors"] != several["final policy.safetensors"]
