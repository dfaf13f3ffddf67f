"""Bidirectional Soft Actor-Critic in JAX, for continuous control."""

from bisac.api import load, train
from bisac.errors import BisacError
from bisac.policy import Policy

__all__ = ["BisacError", "Policy", "load", "train"]
