"""Networks: Equinox modules whose leaves are all arrays, so that plain JAX transformations apply to them.

They know the mathematics below them, and nothing of losses, optimisers or algorithms.
"""
