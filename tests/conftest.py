"""Strictness for every test: shapes are checked at run time, and JAX promotes neither ranks nor dtypes silently."""

import os
from pathlib import Path

# Two workers on a core each are faster than two that share both; it must be said before JAX starts its threads.
if hasattr(os, "sched_setaffinity") and (worker := os.environ.get("PYTEST_XDIST_WORKER")):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})

from jaxtyping import install_import_hook

# Tiny networks spend their time in compilation; this takes two thirds of it away. The command line is tested without.
os.environ["XLA_FLAGS"] = " ".join([
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_backend_optimization_level=0",
    "--xla_cpu_parallel_codegen_split_count=1",
])  # fmt: skip

# Commands that tests start keep what they compile, so that the next need not; each worker has a folder of its own. In
# this process that costs more than it saves: see below.
CACHE = Path(__file__).parents[1] / ".pytest_cache" / f"xla-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
os.environ |= {"JAX_COMPILATION_CACHE_DIR": str(CACHE), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1"}

install_import_hook("bisac", "checked.checked")

import jax  # noqa: E402

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_enable_compilation_cache", False)
