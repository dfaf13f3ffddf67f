"""What help shows beside flags: the commands in groups, and examples that can be typed as they are."""

RUN = "runs/Hopper-v5/sac/seed0"

GROUPS: dict[str, dict[str, str]] = {
    "Train": {
        "train ENV": "train a policy; its run folder holds all that comes out",
        "resume RUN": "go on with a run that was stopped or killed, or make it longer",
    },
    "Judge and compare": {
        "eval RUN": "judge a policy on episodes that it never saw; --video films it",
        "sweep": "train algorithms on tasks over several seeds; run again, it goes on",
        "report SWEEP": "compare them with honest statistics, as a page",
        "tune ENV": "search for good hyperparameters; run again, it goes on",
    },
    "Take it away": {
        "export RUN": "write the policy for use without bisac: ONNX, StableHLO or NumPy",
        "card RUN": "write the policy's model card",
    },
    "Look up": {
        "figure NAME": "draw the paper's figures, from runs of your own",
        "list": "name algorithms and tasks; --algo NAME explains one",
    },
}
"""What each command does, in a line, under what it is for."""

EXAMPLES: dict[str, dict[str, str]] = {
    "": {
        "bisac train Pendulum-v1 --steps 6000": "half a minute",
        "bisac eval runs/Pendulum-v1/bisac/seed0 --video": "is it any good?",
        "bisac train Hopper-v5 --algo sac": "another task, another algorithm",
    },
    "train": {
        "bisac train Hopper-v5 --algo sac --steps 100000": "",
        "bisac train HalfCheetah-v5 --algo sac --preset fast": "a cheap simulator: few updates",
        "bisac train my_package:MyEnv-v0 --env-arg level=3": "your own environment",
        "bisac train Hopper-v5 --config runs/Hopper-v5/sac/seed0/config.json --seed 1": "as that run",
        "bisac train --algo ppo --help": "the settings of another algorithm",
    },
    "resume": {
        f"bisac resume {RUN}": "to the end that it was started for",
        f"bisac resume {RUN} --steps 200000": "and further",
    },
    "eval": {
        f"bisac eval {RUN} --episodes 50 --video": "",
        f"bisac eval {RUN}/best.safetensors": "the best policy in place of the last",
        f"bisac eval {RUN} --env-arg reset_noise_scale=0.1": "in a harder start",
    },
    "sweep": {
        "bisac sweep --env Hopper-v5 --algo sac bisac --seeds 0:5 --steps 50000 --out sweeps/a": "",
        "bisac sweep --env Hopper-v5 --algo sac --sweep batch_size=128,256 --steps 50000 --out sweeps/b": "",
        "bisac sweep plan.toml --dry-run": "flags in a file; shows the plan only",
    },
    "report": {
        "bisac report sweeps/a": "",
        "bisac report sweeps/a --reference bisac": "compare with another contestant",
    },
    "tune": {
        "bisac tune Hopper-v5 --algo sac --trials 50 --steps 100000 --out tuned/hopper": "",
        "bisac tune Hopper-v5 --steps 100000 --out tuned/b --search epsilon=0.1:100:log": "search elsewhere",
    },
    "export": {
        f"bisac export {RUN} --format onnx": "beside the policy",
        f"bisac export {RUN} --out hopper.npz --card": "NumPy alone; and a model card",
    },
    "card": {f"bisac card {RUN} --episodes 50 --license mit": ""},
    "figure gradient": {"bisac figure gradient --samples 64": ""},
    "list": {"bisac list --algo bisac": "what it is, when to choose it, where to read on"},
}
"""Command lines by the command that they belong to, each with a remark."""


def welcome() -> str:
    """Return what `bisac --help` prints."""
    lines = ["[bold]bisac[/]: Bidirectional Soft Actor-Critic for continuous control"]
    for group, commands in GROUPS.items():
        lines += ["", f"[bold]{group}[/]", *(f"  bisac {name:<14} {told}" for name, told in commands.items())]
    lines += ["", examples(""), ""]
    lines += ["'bisac COMMAND --help' tells its flags, 'bisac --version' which version this is;"]
    return "\n".join([*lines, "'bisac --print-completion bash' is for the tab key (or zsh, fish)."])


def examples(command: str) -> str:
    """Return the examples of a command, or nothing."""
    known = EXAMPLES.get(command, {})
    width = min(64, max(map(len, known), default=0))
    lines = [f"  {line:<{width}}  {f'# {told}' if told else ''}".rstrip() for line, told in known.items()]
    return "\n".join(["[bold]Examples[/]", *lines]) if lines else ""
