"""What a line for each request and metrics cost: the service with and without them, in turns.

Both run on the same cores. The one that is loaded is changed every few seconds. Metrics are read every
second. Send standard error to a file, as a service manager does.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.harness import Bound, options_of, verdict
from benchmarks.peers import free_port
from benchmarks.pictures import picture
from benchmarks.service import Running, form, service, uploads, wrk

_ACCOUNT = 'wrk.headers["Authorization"] = "Bearer {key}"\n'


def main() -> int:
    options = options_of(__doc__, seconds=4, rounds=9)
    body, port = form(picture("6mp.jpg").read_bytes()), free_port()
    loads: dict[str, Callable[[Running], float]] = {
        "pictures": lambda running: uploads(running, body, options.seconds),
        "account calls": lambda running: account_calls(running, options.seconds),
    }
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        watched = service(Path(first), monitoring__access_log="json", monitoring__metrics_port=port)
        silent = service(Path(second), monitoring__access_log="off")
        with watched as seen, silent as unseen, reading(f"http://127.0.0.1:{port}/metrics"):
            lost = {what: cost(load, seen, unseen, options.rounds) for what, load in loads.items()}
    for what, share in lost.items():
        print(f"{what}: {share:.1%} fewer per second")
    return verdict([Bound("share of throughput lost, pictures", lost["pictures"], 0.03)])


def cost(load: Callable[[Running], float], seen: Running, unseen: Running, rounds: int) -> float:
    """The share of throughput that is lost, as the median over the rounds."""
    load(seen), load(unseen)
    shares = []
    for turn in range(rounds):
        order = (seen, unseen) if turn % 2 else (unseen, seen)
        rates = {id(running): load(running) for running in order}
        shares.append(1 - rates[id(seen)] / rates[id(unseen)])
    return statistics.median(shares)


def account_calls(running: Running, seconds: int) -> float:
    """Calls per second that do next to nothing."""
    return wrk(running.url + "/1.0/account", seconds, running.folder, _ACCOUNT.format(key=running.key))


@contextlib.contextmanager
def reading(url: str) -> Iterator[None]:
    """Read metrics every second during the block."""
    over = threading.Event()

    def read() -> None:
        while not over.wait(1):
            with urllib.request.urlopen(url) as answer:
                answer.read()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


if __name__ == "__main__":
    sys.exit(main())
