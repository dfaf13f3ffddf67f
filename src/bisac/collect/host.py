"""The collector of Gymnasium environments, which the host steps while one compiled call a step does all the rest.

It carries one run. A Gymnasium environment cannot be saved, but seeded it repeats itself: a snapshot holds the seed and
the actions of each running episode.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from bisac.algos import OffPolicy, OnPolicy, Rollout
from bisac.collect.collector import Collector, Episode, Evaluation, Part, Request, Snapshot, State
from bisac.collect.evaluate import MOST_STEPS, Evaluator
from bisac.collect.hindsight import begin_in_hindsight, learn_in_hindsight
from bisac.collect.learning import (
    DivergedError,
    Flat,
    Learning,
    check_sound,
    fresh_learning,
    learning_shapes,
    with_demos,
    with_episodes,
)
from bisac.collect.off_policy import begin_learning, first_action, learn_and_act, updates_due
from bisac.collect.on_policy import explore, learn_from_rollout
from bisac.envs.goals import Goals
from bisac.envs.host.envs import HostEnvs, RunningEpisode
from bisac.envs.task import Env, Task
from bisac.errors import BisacError
from bisac.policies.policy import Policy
from bisac.types import Transition


class HostPlace(NamedTuple):
    """Where the host's environments are; each array has a row an environment."""

    obs: np.ndarray
    """What the next action answers."""
    action: np.ndarray
    """The next action, already drawn; for algorithms that learn from fresh rollouts, the last one taken."""
    actions: list[np.ndarray]
    """The actions taken in each running episode. Only in snapshots: while a run goes on, the environments hold them."""


class HostCollector(Collector):
    """Steps Gymnasium environments: one step of all, or one rollout, at each call of `advance`."""

    def __init__(self, task: Task, request: Request):
        if len(request.seeds) != 1:
            raise BisacError(
                "Gymnasium environments are trained in one run at a time; 'bisac sweep' trains several seeds of them."
            )
        self.request, self._seed = request, request.seeds[0]
        judged_in = task if request.eval_env is None else Task(request.eval_env)
        self.takes_turns = task.is_single and judged_in.source is task.source
        # What exists once, and learns between episodes, may be hardware: no past action must be sent to it again.
        self._is_real = task.is_single and isinstance(request.algo, OffPolicy) and request.algo.learn_at == "episode"
        with ExitStack() as made:
            self._envs = made.enter_context(closing(HostEnvs(task, request.num_envs, self._seed, request.backend)))
            self._evaluator = made.enter_context(closing(Evaluator(judged_in, request.eval_episodes, self._seed)))
            self.spec, judged = self._envs.spec, self._evaluator.spec
            if not self.takes_turns:
                _check_distinct([*getattr(self._envs.backend, "envs", ()), *self._evaluator.envs], self.spec.env_id)
            if dataclasses.replace(judged, env_id=self.spec.env_id, env_args=self.spec.env_args) != self.spec:
                raise BisacError(f"eval_env is {judged.sizes}, and does not fit {self.spec.sizes}.")
            self._demos = None if request.demos is None else request.demos.fitted(self.spec)
            self._goals, self._begin, self._learn = None, begin_learning, learn_and_act
            if isinstance(request.algo, OffPolicy) and request.algo.her:
                goals = self._goals = made.enter_context(closing(Goals(task)))
                self._begin, self._learn = partial(begin_in_hindsight, goals), partial(learn_in_hindsight, goals)
            self._made = made.pop_all()

    def start(self) -> State:
        """Begin an episode in every environment."""
        algo, num_envs = self.request.algo, self.request.num_envs
        learning = fresh_learning(algo, self.spec, num_envs, jax.random.key(self._seed))
        if self.request.init is not None:
            learning = self.request.init(learning, num_envs)
        learning = self._with_own(learning)
        place = HostPlace(self._envs.reset(), np.zeros((num_envs, self.spec.action_dim), np.float32), [])
        return self._with_first_action(State((Part(Flat.of(learning), place),)))

    def advance(self, state: State, until: int) -> tuple[State, list[list[Episode]]]:  # noqa: ARG002
        """Take a step of all environments, or a rollout, and learn."""
        algo, marked = self.request.algo, self._envs.mark()
        try:
            if isinstance(algo, OffPolicy):
                return self._step(algo, state)
            assert isinstance(algo, OnPolicy)
            return self._roll_out(algo, state)
        except BaseException:  # what was broken off has not begun
            self._envs.rewind(marked)
            raise

    def evaluate(self, policy: Policy, run: int) -> Evaluation:  # noqa: ARG002
        """Play an episode in each of the evaluation's environments."""
        return self._evaluator(policy)

    def at_rest(self, state: State) -> bool:  # noqa: ARG002
        """Return whether an episode has just ended, where one must not be interrupted; elsewhere always.

        A rollout may end in the middle of an episode, which evaluation in the same environment then breaks off: what is
        learned from a rollout does not depend on what follows it. So is an episode that seems to have no end.
        """
        algo = self.request.algo
        if not isinstance(algo, OffPolicy) or not (self.takes_turns or algo.learn_at == "episode"):
            return True
        return any(not episode.length or episode.length >= MOST_STEPS for episode in self._envs.episodes)

    def rejoined(self, state: State) -> State:
        """Begin an episode anew where an evaluation has used the environment."""
        if not self.takes_turns:
            return state
        obs = self._envs.rejoin()
        if obs.tobytes() == state.place.obs.tobytes():
            return state
        return self._with_first_action(state._replace(parts=(Part(state.flat, state.place._replace(obs=obs)),)))

    def snapshot(self, state: State, run: int) -> Snapshot:
        """Return the run with the seeds and actions of its running episodes."""
        self._check_action(state, state.place.action)
        envs, episodes = self._envs, self._envs.episodes
        actions = [np.reshape(np.asarray(e.actions, np.float32), (-1, self.spec.action_dim)) for e in episodes]
        facts = {
            "steps": envs.steps,
            "started": list(envs.started),
            "episodes": [{"seed": e.seed, "length": e.length, "total_reward": e.total_reward} for e in episodes],
        }
        place = state.place._replace(actions=actions)
        return Snapshot(self.learning(state, run), place, facts, state.step, state.updates)

    def shapes(self, facts: Mapping[str, Any]) -> tuple[Learning, HostPlace]:
        """Return the shapes of a snapshot: those of the actions follow from the episodes' lengths."""
        num_envs, action_dim = self.request.num_envs, self.spec.action_dim
        place = HostPlace(
            np.empty((num_envs, self.spec.obs_dim), np.float32),
            np.empty((num_envs, action_dim), np.float32),
            [np.empty((episode["length"], action_dim), np.float32) for episode in facts["episodes"]],
        )
        return learning_shapes(self.request.algo, self.spec, num_envs), place

    def restore(self, snapshots: Sequence[Snapshot]) -> tuple[State, list[int]]:
        """Bring every environment back into its episode."""
        (saved,) = snapshots
        episodes = [
            RunningEpisode(episode["seed"], list(np.asarray(actions)), episode["total_reward"])
            for episode, actions in zip(saved.facts["episodes"], saved.place.actions, strict=True)
        ]
        obs = np.array(saved.place.obs)  # a copy: where an environment begins anew, its first observation goes there
        strayed = self._envs.restore(saved.facts["steps"], saved.facts["started"], episodes, obs, not self._is_real)
        place = HostPlace(obs, np.asarray(saved.place.action), [])
        learning = self._with_own(saved.learning)
        state = State((Part(Flat.of(learning), place),), saved.step, saved.updates)
        return (self._with_first_action(state) if strayed else state), [len(strayed)]

    def close(self) -> None:
        """Close the environments of training and evaluation."""
        self._made.close()

    def _with_own(self, learning: Learning) -> Learning:
        """Return what learning holds with what no checkpoint has: it is in other files, or found again."""
        learning = with_demos(learning, self._demos)
        return learning if self._goals is None else with_episodes(learning, self.request.num_envs)

    def _with_first_action(self, state: State) -> State:
        """Draw the action for observations that no step led to."""
        algo = self.request.algo
        if not isinstance(algo, OffPolicy):
            return state
        random = self._acts_randomly(algo, state.step)
        learning, action = first_action(algo, state.flat.whole, state.place.obs, random)
        place = state.place._replace(action=np.asarray(action))
        return state._replace(parts=(Part(Flat.of(learning), place),))

    def _acts_randomly(self, algo: OffPolicy[Any], step: int) -> bool:
        return step < algo.learning_starts and self.request.init is None

    def _step(self, algo: OffPolicy[Any], state: State) -> tuple[State, list[list[Episode]]]:
        """Act in all environments, remember what came of it, learn, and draw the next actions."""
        ((flat, (obs, action, _)),), step, updates = state
        self._check_action(state, action)
        result = self._envs.step(action)
        discount = 1.0 - result.terminated.astype(np.float32)
        # The compiled call takes the host's arrays as they are: moving each by itself would cost more than the step.
        experience: tuple[Any, ...] = (obs, action, result.reward, discount, result.next_obs)
        step += self.request.num_envs
        now = algo.learn_at == "step" or bool(result.ended.any())
        if self._goals is not None:  # it learns from earlier steps
            now = now and state.step > 0
        due = updates_due(algo, step, updates) if now else 0
        if due and not updates and self.request.init is None:
            flat = Flat.of(self._begin(algo, flat.whole, Transition(*experience)))
        leaves, drawn = self._learn(
            algo, flat.structure, flat.leaves, Transition(*experience), result.ended, result.obs, due,
            self._acts_randomly(algo, step),
        )  # fmt: skip
        place = HostPlace(result.obs, np.asarray(drawn), [])
        part = Part(Flat(leaves, flat.structure), place)
        return State((part,), step, updates + due), [_ended(result.finished)]

    def _roll_out(self, algo: OnPolicy[Any], state: State) -> tuple[State, list[list[Episode]]]:
        """Gather a rollout by the policy of its beginning, and learn from it."""
        num_envs, learning, place = self.request.num_envs, state.flat.whole, state.place
        length = algo.length(num_envs)
        rows: list[tuple[np.ndarray, ...]] = []
        finished: list[RunningEpisode] = []
        for index in range(length):
            action = np.asarray(explore(algo, learning.agent, learning.scaling, place.obs, learning.key, index))
            self._check_action(state, action)
            result = self._envs.step(np.clip(action, -1.0, 1.0))
            discount = 1.0 - result.terminated.astype(np.float32)
            rows.append((place.obs, action, result.reward, discount, result.next_obs, result.ended))
            place = HostPlace(result.obs, action, [])
            finished += result.finished
        remaining = np.float32(1.0 - min(1.0, state.step / self.request.steps))
        rollout: tuple[Any, ...] = tuple(np.stack(column) for column in zip(*rows, strict=True))
        learning = learn_from_rollout(algo, learning, Rollout(*rollout), remaining)
        part = Part(Flat.of(learning), place)
        return State((part,), state.step + length * num_envs, state.updates + 1), [_ended(finished)]

    def _check_action(self, state: State, action: np.ndarray) -> None:
        """Never hand an environment what is no number: it would be blamed for what came of it."""
        if not np.isfinite(action).all():
            check_sound(self.request.algo, state.flat.whole, state.step, state.updates, self.request.num_envs)
            raise DivergedError(f"training diverged: the policy's action is not finite at step {state.step:,}.")


def _ended(episodes: list[RunningEpisode]) -> list[Episode]:
    return [Episode(episode.total_reward, episode.length, episode.info) for episode in episodes]


def _check_distinct(envs: Sequence[Env], name: str) -> None:
    """Refuse one simulator under several names: its copies would act in each other's episodes."""
    if len({id(env.unwrapped) for env in envs}) < len(envs):
        raise BisacError(
            f"{name} is one environment, which was given several times; each call of a function must make a new one, "
            f"and eval_env= must not be what is trained in."
        )
