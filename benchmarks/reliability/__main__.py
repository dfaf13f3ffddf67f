"""The reliability campaign: what can happen to a run, made to happen, in large.

`make campaign` runs it and writes docs/reliability.md. The tests do the same in small, with the same tools
(tests/support).
"""

import argparse
import os
import tempfile
from pathlib import Path

from kills import kill_campaign  # it makes the tests' tools known, and so comes first

from clocks import clock_campaign, cores_campaign  # isort: skip
from crowds import crowd_campaign  # isort: skip
from demonstrations import demonstration_campaign, hindsight_campaign  # isort: skip
from devices import device_campaign  # isort: skip
from disks import disk_campaign  # isort: skip
from environments import environment_campaign  # isort: skip
from files import damage_campaign, foreign_campaign  # isort: skip
from forged import forged_campaign  # isort: skip
from outcomes import read, table, write  # isort: skip
from searches import search_campaign  # isort: skip
from soak import picture_path, soak_campaign  # isort: skip
from sweeps import sweep_campaign  # isort: skip

MARK = "<!-- written by benchmarks/reliability -->"


def campaigns(folder: Path, options: argparse.Namespace):
    """Return the parts of the campaign by name, each not begun yet."""
    parts = {
        "kills": lambda: kill_campaign(folder, options.kills),
        "device": lambda: device_campaign(folder, options.kills),
        "demos": lambda: demonstration_campaign(folder, options.kills),
        "her": lambda: hindsight_campaign(folder, options.kills),
        "sweep": lambda: sweep_campaign(folder, options.kills, options.ray),
        "tune": lambda: search_campaign(folder, options.kills),
        "disk": lambda: disk_campaign(folder),
        "damage": lambda: damage_campaign(folder),
        "environments": lambda: environment_campaign(folder),
        "crowds": lambda: crowd_campaign(folder, options.kills),
        "clock": lambda: clock_campaign(folder),
        "cores": lambda: cores_campaign(folder),
        "checkpoints": lambda: foreign_campaign(folder, options.forged),
        "forged": lambda: forged_campaign(folder, options.forged),
    }
    if options.soak:
        parts["soak"] = lambda: soak_campaign(folder, options.soak, options.every, picture_path(options.out))
    return parts


def main():
    """Run everything, and write the table of docs/reliability.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=4, help="kills of each run, or rounds of kills")
    parser.add_argument("--forged", type=int, default=2000, help="foreign files of each kind")
    parser.add_argument("--soak", type=float, default=0, metavar="MINUTES", help="soak a run for so long")
    parser.add_argument("--every", type=float, default=60, metavar="SECONDS", help="between interruptions of the soak")
    parser.add_argument("--ray", action="store_true", help="kill a worker of a Ray cluster too")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help="these parts; the others' rows stay")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[2] / "docs" / "reliability.md")
    options = parser.parse_args()
    # One cache of compiled programs for all the processes; and a run that is killed compiles again and again.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ |= {
            "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        parts = campaigns(folder, options)
        if unknown := set(options.only) - set(parts):
            parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
        known = read(options.out.with_suffix(".json"))
        for part in options.only or parts:
            known[part] = list(parts[part]())
            known = {name: known[name] for name in (*parts, "soak") if name in known}
            write(options.out.with_suffix(".json"), known)
            head, _, _ = options.out.read_text().partition(MARK)
            options.out.write_text(head + MARK + "\n\n" + table([each for rows in known.values() for each in rows]))


if __name__ == "__main__":
    main()
