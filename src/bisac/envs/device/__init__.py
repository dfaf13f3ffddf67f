"""Environments whose physics are JAX functions, so that they are compiled into the training step."""
