"""Forms of an algorithm that several tests want and that are not its default."""

VDN_A = dict(critic="vdn-a", critic_norm="none", spread="std", epsilon=0.1, epsilon_half_life="none", margin="none")
"""Bidirectional SAC with the paper's critic, classic."""
