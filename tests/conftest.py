"""Strictness for every test: shapes are checked at run time, and JAX promotes neither ranks nor dtypes silently."""

import os

# Two workers on a core each are faster than two that share both; it must be said before JAX starts its threads.
if hasattr(os, "sched_setaffinity") and (worker := os.environ.get("PYTEST_XDIST_WORKER")):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})

from jaxtyping import install_import_hook

# Tiny networks spend their time in compilation; this more than halves it. The command line is tested without.
os.environ["XLA_FLAGS"] = "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=1"

# To keep every tiny program costs more than it saves here.
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"

install_import_hook("bisac", "checked.checked")

import jax  # noqa: E402

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
