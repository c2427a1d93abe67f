"""The service under full load for a long time: its memory, its CPU and what is left of it.

PNGs of 64 x 64 pixels are uploaded over TLS by wrk (from Debian), over few connections and over many in
turns. Results are kept for a minute. What grows, grows in the first minutes: they are the warm-up.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from benchmarks.harness import Bound, options_of, print_table, verdict
from benchmarks.peers import CORES, processes_of
from benchmarks.pictures import picture
from benchmarks.service import Load, form, service, upload_load
from benchmarks.service_sizing import memory

REQUEST = {"resize": {"width": 32}, "output": {"format": "png"}, "response": {"mode": "binary"}}
_CONNECTIONS = (4, 16, 300, 400)
# All connections come from one address and one account, of which the service would refuse some.
_ROOM = {"workers__queue": 1000, "workers__queue_seconds": 60, "server__connections_per_second": 0}
_TURN_SECONDS = 20
_WARM_UP = 0.3  # parts of the time
_GROWTH = 1.05
_END_SECONDS = 5.0


@attrs.frozen
class Turn:
    """What was seen while one number of connections was open."""

    connections: int
    load: Load
    megabytes: float


def main() -> int:
    options = options_of(__doc__, minutes=10.0)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    body = form(picture("small.png").read_bytes(), REQUEST)
    turns: list[Turn] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with service(folder, **_ROOM) as running:
            end = time.monotonic() + 60 * options.minutes
            while time.monotonic() < end or len(turns) < 2 * len(_CONNECTIONS):
                connections = _CONNECTIONS[len(turns) % len(_CONNECTIONS)]
                load = upload_load(running, body, _TURN_SECONDS, connections)
                turns.append(Turn(connections, load, memory(running.pid)))
            processes = processes_of(running.pid)
        left = _left(processes)
    print_table(
        ("connections", "requests a second", "CPU ms a request", "memory in MB"),
        [
            (turn.connections, f"{turn.load.rate:.0f}", f"{turn.load.cpu:.2f}", f"{turn.megabytes:.0f}")
            for turn in turns
        ],
    )
    print("left after the end:", *(left or ["nothing"]))
    warm = turns[int(_WARM_UP * len(turns)) :]
    early, late = warm[: len(warm) // 2], warm[len(warm) // 2 :]

    def growth(found: Callable[[Turn], float]) -> float:
        middles = [statistics.median(map(found, part)) for part in (late, early)]
        return middles[0] / middles[1]

    rates = [
        statistics.median(turn.load.rate for turn in warm if turn.connections == many)
        for many in _CONNECTIONS
    ]
    return verdict(
        [
            Bound(
                "memory of the second half over that of the first",
                growth(lambda turn: turn.megabytes),
                _GROWTH,
            ),
            Bound(
                "CPU a request of the second half over that of the first",
                growth(lambda turn: turn.load.cpu),
                _GROWTH,
            ),
            Bound("rate over 400 connections, over that with 4", rates[-1] / rates[0], 0.9, at_least=True),
            Bound("processes left after the end", len(left), 0),
        ]
    )


def _left(processes: Iterable[int]) -> list[str]:
    """Return the commands of processes that have not ended within some seconds."""
    end = time.monotonic() + _END_SECONDS
    while True:
        folders = [Path(f"/proc/{process}") for process in processes]
        left = [folder for folder in folders if folder.exists()]
        if not left or time.monotonic() > end:
            return [(folder / "cmdline").read_text().replace("\0", " ") for folder in left]
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
