"""Signals as requests."""

import signal

import pytest

from bisac.training import signals
from bisac.training.signals import stop_requests


def test_echo_of_a_signal_is_no_second_request():
    with stop_requests() as requests:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
    assert requests == [signal.SIGINT]


def test_second_request_is_not_delayed(monkeypatch):
    monkeypatch.setattr(signals, "ECHO", -1.0)
    with stop_requests() as requests:
        signal.raise_signal(signal.SIGINT)
        assert requests == [signal.SIGINT]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
