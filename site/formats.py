"""The page of file formats: what is written, from the code that writes it."""

from tables import described, table

from bisac.algos import REGISTRY
from bisac.collect.learning import learning_shapes
from bisac.policies import policy
from bisac.runs.checkpoint import manifest
from bisac.runs.config import MAY_CHANGE
from bisac.runs.demos import DIGEST
from bisac.runs.folder import RECORDED_VERSIONS
from bisac.runs.log import LEADING, SUCCESS
from bisac.runs.record import Record
from bisac.sweeps import record as sweep
from bisac.tuning import record as tuning
from bisac.types import Spec

COLUMNS = {
    "step": "environment steps so far, summed over the environments",
    "wall_time": "seconds of training that led here, evaluations included",
    "eval_return": "mean return of the evaluation's episodes, deterministic policy, the same seeds each time",
    "eval_return_std": "standard deviation over these episodes",
    "episode_return": "mean return of the training episodes since the last row",
    "episode_length": "their mean length",
    "inexact_resumes": "resumes that could not bring an environment back as it was",
    "eval_success_rate": "share of the evaluation's episodes that succeeded, where the environment tells",
    "success_rate": "the same of the training episodes since the last row",
}
"""What each column that every run has tells."""

METRICS = {
    "actor_dead_units": "share of the actor's hidden units that answer a whole batch alike",
    "actor_loss": "the actor's loss",
    "actor_moments_gap": "how far a batch's means lie from the running ones, in running standard deviations",
    "alpha": "the temperature, in units of reward",
    "alpha_mean": "the multiplier that keeps `kl_mean` at its bound",
    "alpha_std": "the multiplier that keeps `kl_std` at its bound",
    "approximate_kl": "from the policy that made the rollout to the one before each gradient step",
    "clip_fraction": "share of the actions whose ratio of probabilities was clipped",
    "critic_dead_units": "share of the critics' hidden units that answer a whole batch alike",
    "critic_loss": "squared TD error",
    "critic_moments_gap": "as `actor_moments_gap`, of the critics",
    "entropy": "of the policy",
    "epsilon": "weight of the projection's distance as it is now",
    "eta": "temperature of the weights of the E-step",
    "explained_variance": "share of the returns' variance that the value function explains",
    "kl_mean": "how far the policy's mean moved from the old one",
    "kl_std": "how far its width did",
    "kl_weights": "divergence of the E-step's weights from equal ones",
    "marginals_unexplained": "share of Q's variation over actions that the distilled marginals miss",
    "penalty_mean": "distance of the policy's mean from the projection's",
    "penalty_spread": "distance of its spread from the projection's",
    "projection_cut_off": "share of marginals with more than 1% of their probability near the ends of the grid",
    "projection_favoured": "share of the states at which the judge rates the projection above the policy",
    "projection_followed": "share of the states at which the projection counts: the same, or 0 where too few do",
    "projection_std": "mean spread of the projection",
    "projection_too_sharp": "share of marginals that are narrower than the grid's spacing",
    "q": "the critics' value at the batch's actions",
    "reward_unit": "what rewards are divided by, measured when learning starts",
    "std": "width of the policy, before tanh",
    "temperature_loss": "the temperature's loss",
    "value_loss": "the value function's loss",
}
"""What each mean over updates tells."""


def formats() -> str:
    """Return the page; a column that is written and not explained here is refused."""
    return "\n\n".join(
        [
            "# File formats",
            "Everything is JSON, CSV or [safetensors](https://github.com/huggingface/safetensors): reading a file "
            "cannot run code. Files are written beside their place and then renamed, so that a crash leaves the old "
            "or the new one. What lies where: [run folder](../run-folder.md).",
            *_config(),
            *_progress(),
            *_policy(),
            *_checkpoint(),
            *_sweep(),
            *_tuning(),
        ]
    ) + "\n"  # fmt: skip


def _config() -> list[str]:
    rows = [
        ("`format`", "1"),
        ("`env`, `env_source`", "the task's id; what the run was started on: the id, or the module and name of a "
         "function"),
        ("`algo`, `algo_module`", "the algorithm's name; the module that registers it, where it is not ours"),
        ("`hyperparameters`", "every [setting of the algorithm](settings.md); `auto` stands only where the task or a "
         "measurement decides"),
        ("`run`", f"every [setting of the run](settings.md#of-every-run); of these only {_listed(MAY_CHANGE)} may "
         "change when it goes on"),
        ("`eval_env`, `eval_env_source`", "what it is evaluated in, where that is another"),
        (f"`{DIGEST}`", "SHA-256 of the demonstrations, where there are any"),
        ("`resumed_with`", "where it went on with another environment: `step` and `env_source` of each time"),
        ("`versions`", f"of Python and of {_listed(RECORDED_VERSIONS)}"),
        ("`platform`, `cores`, `command`", "the machine, how many cores the process had, and what was typed"),
    ]  # fmt: skip
    return ["## config.json", table(("key", ""), rows)]


def _progress() -> list[str]:
    names = (*LEADING, *SUCCESS)
    spec = Spec("", 1, (-1.0,), (1.0,))
    told: dict[str, list[str]] = {}
    for algo, kind in REGISTRY.items():
        settled = kind().settled()
        for name in learning_shapes(settled, spec, settled.usual_envs()).metric_sums:
            told.setdefault(name, []).append(algo)
    unexplained = [name for name in (*names, *told) if name not in COLUMNS | METRICS]
    if unexplained:
        raise SystemExit(f"site/formats.py does not explain {', '.join(unexplained)}, which progress.csv has.")
    return [
        "## progress.csv",
        "A row for each evaluation. An empty field means nothing to tell yet, such as before learning starts. Every "
        "run has these columns, success where the environment tells it:",
        table(("column", ""), [(f"`{name}`", COLUMNS[name]) for name in names]),
        "The others are means over the updates since the last row, by name; with settings that are not the default, "
        "an algorithm may have more of them, or fewer. What [you log yourself](../python.md#a-run-is-a-loop) follows.",
        table(("column", "", "algorithms"), [(f"`{n}`", METRICS[n], ", ".join(told[n])) for n in sorted(told)]),
        "TensorBoard's events hold the same numbers.",
    ]


def _policy() -> list[str]:
    return [
        "## A policy file",
        "`policy.safetensors`, `best.safetensors`, and whatever `policy.save` writes. `bisac.load(path)` needs "
        "nothing else. The tensors are the leaves of the policy, under their place in it: `mlp.weights.0` and so on; "
        "in a normalised network also `mlp.norms.0.scale`, `.shift`, and the running moments `.moments.mean`, "
        "`.moments.var`. Where observations are normalised the network is `actor. ...`, and the statistics are "
        "`observations.mean` and `observations.var`. With normalised critics it is the mean of the actor over its "
        "last steps, which evaluations judge. The metadata has one key, `bisac`, a JSON object:",
        table(
            ("key", ""),
            [
                ("`format`, `version`", f"`{policy.FORMAT}`, {policy.VERSION}; another version is refused"),
                ("`written_by`", "the version of bisac"),
                (
                    "`algo`, `algo_module`, `settings`",
                    "the algorithm and all its hyperparameters, from which the "
                    "networks' shapes follow; what is not named has the meaning of its time: without `critic_norm` the "
                    "classic form, without `critic` VDN-a",
                ),
                ("`step`", "environment steps of training that led to it, where they are known"),
                ("`spec`", "the environment, as below"),
            ],
        ),
        described(Spec),
    ]


def _checkpoint() -> list[str]:
    files = ", ".join(f"`{name}`" for name in (manifest.MANIFEST, *manifest.FILES))
    return [
        "## A checkpoint",
        f"A folder `step-N` with {files}, and beside it `replay/` with pieces of at most {manifest.PIECE_ROWS:,} rows. "
        f"Its manifest has `format` `{manifest.FORMAT}` and `version` {manifest.VERSION}; this bisac reads versions "
        f"{' and '.join(map(str, manifest.READABLE))}. The whole of it: "
        "[checkpoints](../checkpoints.md#format-version-2). What the manifest calls `record`:",
        described(Record, without=("progress", "best_policy")),
    ]


def _sweep() -> list[str]:
    return [
        f"## {sweep.RECORD}",
        f"All that was ever planned in a sweep's folder; how far the runs have come is in their own folders. `format` "
        f"is {sweep.FORMAT}; 1 is read too, and means classic critics. A report needs this file, and `config.json` "
        "and `progress.csv` of each run.",
        described(sweep.SweepRecord),
        "A contestant is an object of `algo`, its name, and `settings`, a list of names and values.",
    ]


def _tuning() -> list[str]:
    return [
        f"## {tuning.RECORD}",
        "`format` is 1. `commands` and `provenance` are as in a sweep's record. What was tried is in `study.db`, "
        "Optuna's study named `bisac`. What is searched is under `tuning`:",
        table(
            ("key", ""),
            [
                ("`env`, `algo`", "the task's id and the algorithm's name"),
                ("`fixed`", "hyperparameters that all trials share"),
                ("`search`", "where to look for each of the others"),
                ("`seed`", "trial K trains with the seed that many above it"),
                ("`prune`", "whether trials that do worse than most are ended early"),
                (
                    "`steps`, `eval_every`, ...",
                    "every [setting of the run](settings.md#of-every-run) that trials share",
                ),
            ],
        ),
    ]


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(f'`{name}`' for name in names[:-1])} and `{names[-1]}`"
