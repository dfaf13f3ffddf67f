"""The other libraries in a race to a return: python race_peers.py NAME ENV SEED GOAL LIMIT."""

import sys
from typing import Any

from race import Race

NARROW = {"policy_kwargs": {"net_arch": {"pi": [256, 256], "qf": [256, 256]}}}
COOL = {"ent_coef": "auto_0.1"}
CONTESTANTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "sb3-sac": ("stable_baselines3", "SAC", {}),
    "sbx-sac": ("sbx", "SAC", {}),
    "sb3-sac-cool": ("stable_baselines3", "SAC", COOL),
    "sbx-sac-cool": ("sbx", "SAC", COOL),
    "sbx-crossq": ("sbx", "CrossQ", {}),
    "sbx-crossq-256": ("sbx", "CrossQ", NARROW),
}


def main(name: str, env: str, seed: str, goal: str, limit: str) -> None:
    """Train with the library's defaults, until the race is over."""
    from importlib import import_module

    from stable_baselines3.common.callbacks import BaseCallback

    library, kind, settings = CONTESTANTS[name]
    algorithm = getattr(import_module(library), kind)
    race = Race(env, float(goal), float(limit))
    model = algorithm("MlpPolicy", env, device="cpu", seed=int(seed), **settings)

    class Judged(BaseCallback):
        def _on_step(self) -> bool:
            return not race.over(self.num_timesteps, lambda obs: model.predict(obs, deterministic=True)[0])

    model.learn(10**9, callback=Judged(), log_interval=None)
    race.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
