import jax.numpy as jnp
import numpy as np

from bisac.nets.scaled import Statistics


def test_statistics_are_those_of_all_that_was_seen():
    rng = np.random.default_rng(0)
    batches = [rng.normal(3.0, [0.1, 5.0], (size, 2)).astype(np.float32) for size in (1, 7, 400, 2)]
    statistics = Statistics.init(2)
    for batch in batches:
        statistics = statistics.updated(jnp.asarray(batch))
    everything = np.concatenate(batches)
    np.testing.assert_allclose(statistics.mean, everything.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(statistics.var, everything.var(axis=0), rtol=1e-4)
