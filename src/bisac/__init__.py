"""Bidirectional Soft Actor-Critic in JAX: SAC with forward and reverse KL divergence, for continuous control."""

from bisac import tasks
from bisac.api import load, resume, train
from bisac.errors import BisacError
from bisac.machine import own_version
from bisac.policies.policy import Policy

__all__ = ["BisacError", "Policy", "load", "resume", "tasks", "train"]

__version__ = own_version()
