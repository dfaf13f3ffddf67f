"""Bidirectional Soft Actor-Critic in JAX: SAC with forward and reverse KL divergence, for continuous control."""

from bisac import replay, tasks
from bisac.algos import register
from bisac.api import evaluate, load, reopen, resume, start, train
from bisac.collect.collector import Evaluation
from bisac.errors import BisacError
from bisac.machine import own_version
from bisac.policies.policy import Policy
from bisac.runs.events import (
    Advanced,
    EpisodeEnded,
    Evaluated,
    Event,
    Finished,
    Logged,
    Saved,
    Started,
    Tracked,
    Warned,
)
from bisac.runs.training import Training

__all__ = [
    "Advanced",
    "BisacError",
    "EpisodeEnded",
    "Evaluated",
    "Evaluation",
    "Event",
    "Finished",
    "Logged",
    "Policy",
    "Saved",
    "Started",
    "Tracked",
    "Training",
    "Warned",
    "evaluate",
    "load",
    "register",
    "reopen",
    "replay",
    "resume",
    "start",
    "tasks",
    "train",
]

__version__ = own_version()
