"""What a run has told so far, and what it gathers for the next row of its log: part of every checkpoint."""

from dataclasses import dataclass, field


@dataclass
class Record:
    """What a run has told so far, and what it gathers for the next row of its log."""

    progress: str = ""
    """The content of progress.csv."""
    seconds: float = 0.0
    """Time spent training, however often it was interrupted."""
    best_return: float | None = None
    """The mean return of the best evaluation."""
    best_policy: bytes = b""
    """The content of the policy file that gave the best evaluation."""
    returns: list[float] = field(default_factory=list)
    """Returns of the episodes that ended since the last row."""
    lengths: list[int] = field(default_factory=list)
    """Lengths of these episodes."""
    successes: int | None = None
    """How many of these episodes succeeded; None where the environment has not told so far."""
    logged: dict[str, list[float]] = field(default_factory=dict)
    """What the user logged since the last row, by the name of its column."""
    inexact_resumes: int = 0
    """How often an environment did not come back as it was."""
    remembered: int = 0
    """Rows that the replay memory held before the first step."""
    owes_evaluation: bool = False
    """Whether an evaluation was due when the run stopped, and could not be made."""
