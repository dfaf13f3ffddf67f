"""Strictness for every test: shapes are checked at run time, and JAX promotes neither ranks nor dtypes silently."""

from jaxtyping import install_import_hook

install_import_hook("bisac", "beartype.beartype")

import jax  # noqa: E402

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
