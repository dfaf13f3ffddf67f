"""Pure JAX functions: the mathematics of the paper, without networks or state."""
