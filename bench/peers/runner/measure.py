"""One round after the other, each peer in each; the best round counts.

Rounds are outside: a burst of foreign load then spoils one round of several peers, which the best of
the rounds forgives, and not all rounds of one.
"""

import json
import time

from .install import TARGET
from .peers import REPEATED
from .shell import Failure, run_limited, say

TIME_OUT = 120  # seconds for one part of one peer
LOG = TARGET / "drivers.log"


def measure(peers, rounds, stores, between):
    """Rows of all peers. `between` runs once, after the first round."""
    runs = {}  # (peer, figure) → rows
    LOG.write_bytes(b"")
    for number in range(1, rounds + 1):
        for peer in peers:
            for part, tasks in peer.parts.items():
                if number == 1 or part in REPEATED:
                    for row in one(peer, part, tasks, stores, f"round {number} of {rounds}"):
                        runs.setdefault((row["peer"], row["figure"]), []).append(row)
        if number == 1:
            between()
    return [best(rows) for rows in runs.values()]


def one(peer, part, tasks, stores, round_name):
    """The rows of one part; none when it fails, which the end of the run reports."""
    command = [*peer.command, peer.name, part, str(tasks)]
    begin = time.monotonic()
    try:
        output = run_limited(command, stores.fresh(peer.store), TIME_OUT, LOG)
        rows = [json.loads(line) | {"tasks": tasks} for line in output.splitlines()]
    except (Failure, json.JSONDecodeError) as failure:
        say(f"{round_name}  {peer.name:<26} {part:<8} FAILED: {failure}")
        return []
    values = "  ".join(f"{row['figure']} {row['value']:,.1f}" for row in rows)
    say(f"{round_name}  {peer.name:<26} {part:<8} {time.monotonic() - begin:5.1f} s  {values}")
    return rows


def best(rows):
    """The highest rate; of times there is only one."""
    values = [row["value"] for row in rows]
    return max(rows, key=lambda row: row["value"]) | {"runs": [round(value, 3) for value in values]}
