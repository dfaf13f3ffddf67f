import jax
import jax.numpy as jnp
import pytest

from bisac.algos.delay import Delay, delayed


def improve_from(value):
    return lambda: (value + 1.0, {"at": value})


def test_every_update_improves_where_nothing_is_delayed():
    value = jnp.zeros(())
    for step in range(3):
        value, told, delay = delayed(1, None, improve_from(value), value)
        assert (float(value), float(told["at"])) == (step + 1, step)
        assert delay is None


@pytest.mark.parametrize("every", [2, 3])
def test_the_first_of_a_few_updates_improves_and_the_others_tell_of_it(every):
    @jax.jit
    def update(value, delay):
        return delayed(every, delay, improve_from(value), value)

    value, delay = jnp.zeros(()), Delay(jnp.zeros((), jnp.int32), {"at": jnp.zeros(())})
    for step in range(2 * every):
        value, told, delay = update(value, delay)
        assert float(value) == step // every + 1
        assert float(told["at"]) == step // every
    assert int(delay.updates) == 2 * every


def test_what_it_will_tell_is_known_before_the_first_update():
    value = jnp.zeros(())
    *_, delay = jax.eval_shape(lambda: delayed(3, None, improve_from(value), value))
    assert delay.told.keys() == {"at"}
