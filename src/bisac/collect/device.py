"""The collector of environments on the device: many steps, with all learning in between, are one compiled call.

It carries one run, or several side by side. All that changes is arrays, so that a snapshot is complete, and a restored
run goes on to the bit by construction.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import equinox as eqx
import jax
import numpy as np

from bisac.algos import OffPolicy, OnPolicy
from bisac.collect.collector import Collector, Episode, Evaluation, Part, Request, Snapshot, State
from bisac.collect.learning import DivergedError, Flat, Learning, check_sound, fresh_learning, learning_shapes
from bisac.collect.off_policy import begin_learning, updates_due
from bisac.collect.playing import play
from bisac.collect.programs import CHUNK, Happened, learn_from_steps, learn_in_steps
from bisac.collect.side_by_side import Group, grouped, joined, one_of
from bisac.collect.stepping import Place, first_place
from bisac.envs.device.task import DeviceTask
from bisac.errors import BisacError
from bisac.policies.policy import Policy

UPDATES = 256
"""Updates of one call at which it takes no further step: between two calls a run hears signals."""


class DeviceCollector(Collector):
    """Steps environments of Brax's convention inside compiled programs."""

    def __init__(self, task: DeviceTask, request: Request, batched: bool | None = None):
        """`batched` says whether the runs of a device are one program; by default so on accelerators."""
        if isinstance(request.algo, OffPolicy) and request.algo.learn_at != "step":
            raise BisacError("--learn-at episode is for environments that must not wait; one on the device never does.")
        if request.eval_env is not None:
            raise BisacError("an environment on the device is evaluated there too; leave eval_env out.")
        self.request, self.task, self.spec, self.notes = request, task, task.spec, task.notes
        self._groups = grouped(request.seeds, batched)

    def start(self) -> State:
        """Begin an episode in every environment of every run."""
        return State(tuple(self._part(group, [self._fresh(seed) for seed in group.seeds]) for group in self._groups))

    def advance(self, state: State, until: int) -> tuple[State, list[list[Episode]]]:
        """Take many steps of all environments, or a rollout, and learn."""
        algo = self.request.algo
        if isinstance(algo, OffPolicy):
            return self._step(algo, state, until)
        assert isinstance(algo, OnPolicy)
        return self._roll_out(algo, state)

    def evaluate(self, policy: Policy, run: int) -> Evaluation:
        """Play the evaluation's episodes in one compiled call."""
        return play(self.task, policy, self.request.eval_episodes, self.request.seeds[run])

    def snapshot(self, state: State, run: int) -> Snapshot:
        """Return one of the runs: its arrays are all there is to it."""
        size = len(self._groups[0].seeds)
        place = one_of(state.parts[run // size].place, run % size, size)
        return Snapshot(self.learning(state, run), place, {}, state.step, state.updates)

    def shapes(self, facts: Mapping[str, Any]) -> tuple[Learning, Place]:  # noqa: ARG002
        """Return the shapes of a snapshot."""
        num_envs = self.request.num_envs
        place = jax.eval_shape(partial(first_place, self.task, num_envs), jax.random.key(0))
        return learning_shapes(self.request.algo, self.spec, num_envs), place

    def restore(self, snapshots: Sequence[Snapshot]) -> tuple[State, list[int]]:
        """Put the arrays of the runs side by side again."""
        runs = iter([(snapshot.learning, snapshot.place) for snapshot in snapshots])
        parts = tuple(self._part(group, list(islice(runs, len(group.seeds)))) for group in self._groups)
        return State(parts, snapshots[0].step, snapshots[0].updates), [0] * len(snapshots)

    def close(self) -> None:
        """Nothing is held open."""

    def _fresh(self, seed: int) -> tuple[Learning, Place]:
        key, num_envs = jax.random.key(seed), self.request.num_envs
        place = jax.jit(first_place, static_argnums=(0, 1))(self.task, num_envs, key)
        learning = fresh_learning(self.request.algo, self.spec, num_envs, key)
        return (learning if self.request.init is None else self.request.init(learning, num_envs)), place

    def _part(self, group: Group, runs: Sequence[tuple[Learning, Place]]) -> Part:
        learning, place = jax.device_put(joined(runs), group.device)
        return Part(Flat.of(learning), place)

    def _step(self, algo: OffPolicy[Any], state: State, until: int) -> tuple[State, list[list[Episode]]]:
        dues, randoms = self._plan(algo, state, until)
        count, made = len(dues), sum(dues)
        if made and not state.updates and self.request.init is None:
            state = self._begun(algo, state)
        padding = (0, CHUNK - count)
        planned = np.pad(np.array(dues, np.int32), padding), np.pad(np.array(randoms), padding), np.int32(count)
        program = partial(learn_in_steps, self.task, algo)
        return self._run(program, planned, state, count, made)

    def _roll_out(self, algo: OnPolicy[Any], state: State) -> tuple[State, list[list[Episode]]]:
        remaining = np.float32(1.0 - min(1.0, state.step / self.request.steps))
        program = partial(learn_from_steps, self.task, algo)
        return self._run(program, (remaining,), state, algo.length(self.request.num_envs), 1)

    def _run(
        self, program: Callable[..., Any], shared: tuple[Any, ...], state: State, count: int, updates: int
    ) -> tuple[State, list[list[Episode]]]:
        """Let each group's program take `count` steps; the devices work at the same time."""
        results = [program(part.flat.whole, part.place, *shared) for part in state.parts]
        parts = tuple(Part(Flat.of(learning), place) for learning, place, _ in results)
        after = State(parts, state.step + count * self.request.num_envs, state.updates + updates)
        told = [jax.device_get(happened) for _, _, happened in results]
        if not all(happened.sound.all() for happened in told):
            self._refuse(after)
        return after, [episodes for happened in told for episodes in self._ended(happened, count)]

    def _plan(self, algo: OffPolicy[Any], state: State, until: int) -> tuple[list[int], list[bool]]:
        """Return for each of the next steps the updates after it, and whether its actions are random.

        It ends before the step of the first update, so that the algorithm sees the random steps before it learns. Where
        there were none, the first update waits for a step.
        """
        dues: list[int] = []
        randoms: list[bool] = []
        step, made = state.step, 0
        while not dues or (step < until and len(dues) < CHUNK and made < UPDATES):
            due = updates_due(algo, step + self.request.num_envs, state.updates + made)
            if due and not state.updates and not made:
                if dues:
                    break
                due = due if step else 0
            randoms.append(step < algo.learning_starts and self.request.init is None)
            dues.append(due)
            step, made = step + self.request.num_envs, made + due
        return dues, randoms

    def _begun(self, algo: OffPolicy[Any], state: State) -> State:
        """Let the algorithm see the random steps of each run, before the first update."""
        size, parts = len(self._groups[0].seeds), []
        for index, (group, part) in enumerate(zip(self._groups, state.parts, strict=True)):
            runs = range(index * size, (index + 1) * size)
            agents = joined([begin_learning(algo, self.learning(state, run)).agent for run in runs])
            learning = eqx.tree_at(lambda t: t.agent, part.flat.whole, jax.device_put(agents, group.device))
            parts.append(part._replace(flat=Flat.of(learning)))
        return state._replace(parts=tuple(parts))

    def _ended(self, happened: Happened, count: int) -> list[list[Episode]]:
        """Return the episodes that ended in each run of a group."""
        shape = (-1, len(self._groups[0].seeds), self.request.num_envs)
        ended, lengths, totals = (rows.reshape(shape)[:count].swapaxes(0, 1) for rows in happened[:3])
        return [
            [Episode(float(total), int(length)) for total, length in zip(total[over], length[over], strict=True)]
            for over, length, total in zip(ended, lengths, totals, strict=True)
        ]

    def _refuse(self, state: State) -> None:
        """Refuse to go on where an environment gave what is no number, or was given it."""
        for run in range(len(self.request.seeds)):
            held = self.learning(state, run, remembered=False)
            check_sound(self.request.algo, held, state.step, state.updates, self.request.num_envs)
        raise DivergedError(
            f"{self.spec.env_id} gave an observation or a reward that is not finite by step {state.step:,}; the "
            f"environment must be mended. 'bisac resume' goes on from the last checkpoint."
        )
