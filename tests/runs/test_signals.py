"""Signals as requests."""

import signal
import threading

import pytest

from bisac.runs import signals
from bisac.runs.signals import stop_requests


def test_echo_of_a_signal_is_no_second_request():
    with stop_requests() as requests:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
    assert requests == [signal.SIGINT]


def test_late_echo_finds_nobody_to_kill(monkeypatch):
    """As of a parent with many threads: the second signal comes when the step is over."""
    monkeypatch.setattr(signals, "ECHO", 1.0)
    late = threading.Timer(0.1, signal.pthread_kill, (threading.get_ident(), signal.SIGTERM))
    too_late = []
    found = signal.signal(signal.SIGTERM, lambda *_: too_late.append(True))  # else it would end the tests
    try:
        with stop_requests() as requests:
            signal.raise_signal(signal.SIGTERM)
            late.start()
        late.join()
    finally:
        signal.signal(signal.SIGTERM, found)
    assert requests == [signal.SIGTERM]
    assert too_late == []


def test_second_request_is_not_delayed(monkeypatch):
    monkeypatch.setattr(signals, "ECHO", -1.0)
    # Where the tests themselves run in a shell's background, Ctrl-C is ignored.
    found = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with stop_requests() as requests:
            signal.raise_signal(signal.SIGINT)
            assert requests == [signal.SIGINT]
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, found)
