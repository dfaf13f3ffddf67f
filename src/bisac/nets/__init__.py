"""Networks: Equinox modules whose leaves are all arrays, so that plain JAX transformations apply to them."""
