"""The algorithms: what each learns, and how. They know networks and mathematics, never environments, runs or files."""

from bisac.algos.base import Algorithm, OffPolicy, OnPolicy, Rollout
from bisac.algos.bidirectional_sac import BidirectionalSAC
from bisac.algos.ddpg import DDPG, TD3
from bisac.algos.forward_sac import ForwardSAC, ForwardSACActor
from bisac.algos.mpo import MPO
from bisac.algos.plugins import find_installed, register
from bisac.algos.ppo import A2C, PPO
from bisac.algos.registry import (
    REGISTRY,
    algorithm_from_json,
    algorithm_name,
    make_algorithm,
    module_of,
    value_from_json,
)
from bisac.algos.sac import SAC

__all__ = [
    "A2C",
    "DDPG",
    "MPO",
    "PPO",
    "REGISTRY",
    "SAC",
    "TD3",
    "Algorithm",
    "BidirectionalSAC",
    "ForwardSAC",
    "ForwardSACActor",
    "OffPolicy",
    "OnPolicy",
    "Rollout",
    "algorithm_from_json",
    "algorithm_name",
    "find_installed",
    "make_algorithm",
    "module_of",
    "register",
    "value_from_json",
]
