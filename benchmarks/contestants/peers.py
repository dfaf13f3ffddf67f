"""The other libraries as contestants, each trained as its users train it.

python peers.py NAME ENV REPLAY
"""

import sys
from importlib import import_module

from meter import LEARNING_STARTS, UPDATES, WARMED_UP, Meter

FOREVER = 10**9
ENVS, ROLLOUT = 8, 2048
MODULES = {"sb3": "stable_baselines3", "sbx": "sbx"}


def main(name: str, env: str, replay: str) -> None:
    """Train until the harness has seen enough."""
    library, algo = name.split("-")
    if library == "rejax":
        rejax_sac(env, int(replay))
    elif algo == "ppo":
        baselines_ppo(library, env)
    else:
        baselines_sac(library, env, int(replay))


def baselines_sac(library: str, env: str, replay: int) -> None:
    """SAC of Stable-Baselines3 or SBX, which share an interface."""
    algo = import_module(MODULES[library]).SAC
    meter = Meter(LEARNING_STARTS + 1, WARMED_UP, lambda: bare_updates())
    settings = {"learning_starts": LEARNING_STARTS, "buffer_size": replay, "batch_size": 256}
    model = algo("MlpPolicy", env, train_freq=1, gradient_steps=1, device="cpu", seed=0, **settings)
    buffer = model.replay_buffer
    for rows in (buffer.observations, buffer.next_observations, buffer.actions, buffer.rewards, buffer.dones):
        rows.fill(0)  # NumPy's zeros take no memory until written; a long run writes them all

    def bare_updates() -> int:
        model.train(gradient_steps=UPDATES, batch_size=256)
        return UPDATES

    model.learn(FOREVER, callback=ticking(meter), log_interval=None)


def baselines_ppo(library: str, env: str) -> None:
    """PPO of Stable-Baselines3 or SBX on environments stepped in turn, their default."""
    from stable_baselines3.common.env_util import make_vec_env

    settings = {"n_steps": ROLLOUT // ENVS, "batch_size": 64, "n_epochs": 10}
    model = import_module(MODULES[library]).PPO("MlpPolicy", make_vec_env(env, ENVS, seed=0), device="cpu", **settings)
    model.learn(FOREVER, callback=ticking(Meter(ROLLOUT, 2 * ROLLOUT)), log_interval=None)


def ticking(meter: Meter):
    """A callback that tells the meter of the steps taken, each time they have been learned from."""
    from stable_baselines3.common.callbacks import BaseCallback

    class Ticking(BaseCallback):
        seen = 0

        def _on_rollout_start(self) -> None:
            before, self.seen = self.seen, self.model.num_timesteps
            meter.tick(self.seen - before)

        def _on_step(self) -> bool:
            return True

    return Ticking()


def rejax_sac(env: str, replay: int) -> None:
    """SAC of rejax; its environment is compiled with the rest, so a stretch of training is one call."""
    import jax
    import jax.numpy as jnp
    from rejax import SAC

    stretch = 50
    meter = Meter(LEARNING_STARTS + 1, WARMED_UP)
    settings = {"fill_buffer": LEARNING_STARTS, "buffer_size": replay, "batch_size": 256, "num_envs": 1}
    algo = SAC.create(env=env, hidden_layer_sizes=(256, 256), learning_rate=3e-4, **settings)
    state = jax.tree.map(jnp.copy, algo.init_state(jax.random.PRNGKey(0)))  # some leaves are one buffer: not donatable
    train = jax.jit(lambda s: jax.lax.fori_loop(0, stretch, lambda _, t: algo.train_iteration(t), s), donate_argnums=0)
    while True:
        state = train(state)
        jax.block_until_ready(state)
        meter.tick(stretch)


if __name__ == "__main__":
    main(*sys.argv[1:])
