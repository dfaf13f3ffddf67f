"""The reliability campaign: what can happen to a run, made to happen, in large.

`make campaign` runs it and writes docs/reliability.md. The tests do the same in small, with the same tools
(tests/support).
"""

import argparse
import os
import tempfile
from itertools import chain
from pathlib import Path

from kills import kill_campaign  # it makes the tests' tools known, and so comes first

from disks import disk_campaign  # isort: skip
from files import damage_campaign, foreign_campaign  # isort: skip

MARK = "<!-- written by benchmarks/reliability -->"


def main():
    """Run everything, and write the table of docs/reliability.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=4, help="kills of each run, of every algorithm, with 1 and 3 envs")
    parser.add_argument("--foreign", type=int, default=2000, help="foreign files of each kind")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[2] / "docs" / "reliability.md")
    options = parser.parse_args()
    # One cache of compiled programs for all the processes; and a run that is killed compiles again and again.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ |= {
            "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        table = ["| what was done to a run | times | what came of it |", "|---|---|---|"]
        head, _, _ = options.out.read_text().partition(MARK)
        campaigns = kill_campaign(folder, options.kills), disk_campaign(folder), damage_campaign(folder)
        for what, times, result in chain(*campaigns, foreign_campaign(folder, options.foreign)):
            table.append(f"| {what} | {times:,} | {result} |")
            options.out.write_text(head + MARK + "\n\n" + "\n".join(table) + "\n")


if __name__ == "__main__":
    main()
