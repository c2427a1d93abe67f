"""Measure what a request costs the process that listens: calls of Python functions, and CPU.

``python -m tools.listening [--tree PATH] [--list]`` counts the calls in this checkout or another one.
``python -m tools.listening --against PATH`` measures the CPU of both, in turns. Clients and workers are other
processes, and requests come one after the other over one connection with TLS.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import http.server
import inspect
import json
import os
import re
import runpy
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import attrs
from benchmarks.service import BOUNDARY, Running, form, service

from imgsvc_urls import Signer

TOP = Path(__file__).resolve().parent.parent
PICTURE = TOP / "examples" / "pictures" / "portrait.jpg"
COUNTED = 40  # requests of each kind: what runs beside them, such as timers, hardly counts
TIMED = 250
MOST = 10_000  # requests of a kind
WARM_UP = 12
REQUEST = {"resize": {"width": 200}, "output": {"format": "webp"}}
_COUNTS = "COUNTS_OF_CALLS"  # the file that counts are written to


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tree", type=Path, default=TOP, help="a checkout with src/")
    parser.add_argument("--against", type=Path, help="another checkout, whose CPU is measured in turns")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each checkout")
    parser.add_argument("--list", action="store_true", help="name every function that is called")
    parser.add_argument("--serve", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        serve_counted(arguments.serve)
    elif arguments.against is not None:
        print_cpu({"this": arguments.tree, "other": arguments.against}, arguments.rounds)
    else:
        print_calls(arguments.tree, with_names=arguments.list)
    return 0


def print_calls(tree: Path, *, with_names: bool = False) -> None:
    """Print how many calls of Python functions each kind of request takes in the process that listens."""
    print("calls of Python functions in the process that listens:")
    with serving(tree, counted=True) as service:
        for kind, call in service.calls().items():
            for number in range(WARM_UP):
                call(number)
            service.count(True)
            for number in range(WARM_UP, WARM_UP + COUNTED):
                call(number)
            calls = service.count(False)
            groups: Counter[str] = Counter()
            for name, count in calls.items():
                groups["imgsvc" if name.startswith("imgsvc") else name.partition("/")[0]] += count
            shown = ", ".join(f"{name} {count / COUNTED:.0f}" for name, count in groups.most_common(6))
            print(f"  {kind:8}{sum(calls.values()) / COUNTED:6.0f}  ({shown})")
            for name, count in sorted(calls.items(), key=lambda item: -item[1]) if with_names else ():
                if count >= COUNTED / 2:
                    print(f"    {count / COUNTED:6.1f} {name}")


def print_cpu(trees: Mapping[str, Path], rounds: int) -> None:
    """Print the CPU milliseconds of a request in the process that listens, of two checkouts in turns."""
    with contextlib.ExitStack() as stack:
        services = {name: stack.enter_context(serving(tree)) for name, tree in trees.items()}
        taken: dict[str, dict[str, list[float]]] = {}
        asked = dict.fromkeys(services, 0)
        for turn in range(rounds + 1):
            for name, service in services.items():
                for kind, call in service.calls().items():
                    before = service.cpu_seconds()
                    for number in range(asked[name], asked[name] + TIMED):
                        call(number)
                    each = 1000 * (service.cpu_seconds() - before) / TIMED
                    if turn:  # the first one warms up
                        taken.setdefault(kind, {}).setdefault(name, []).append(each)
                asked[name] += TIMED
    this, other = trees
    for kind, series in taken.items():
        ratios = [mine / theirs for mine, theirs in zip(series[this], series[other], strict=True)]
        print(
            f"{kind:8} {this} {statistics.median(series[this]):6.3f} ms, "
            f"{other} {statistics.median(series[other]):6.3f} ms, "
            f"ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        )


@attrs.frozen
class Service:
    """A service that runs, and what its clients need."""

    running: Running
    pid: int
    origin: str
    signer: Signer

    def calls(self) -> dict[str, Callable[[int], None]]:
        """Return what sends the request of a number, by kinds."""
        address = urlsplit(self.running.url)
        connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, context=self.running.tls
        )
        key = {"Authorization": f"Bearer {self.running.key}"}
        upload = key | {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
        body = form(PICTURE.read_bytes(), REQUEST)

        def send(method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> None:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            data = answer.read()
            assert answer.status == 200, data

        def fetch(number: int) -> None:
            asked = json.dumps({"url": f"{self.origin}/{number}.jpg", **REQUEST}).encode()
            send("POST", "/1.0/fetch", asked, key | {"Content-Type": "application/json"})

        def look(number: int) -> None:
            send("GET", self.signer.url(f"photos/{number}.jpg", resize="200x"), None, {})

        return {
            "upload": lambda number: send("POST", "/1.0/upload", body, upload),
            "fetch": fetch,
            "miss": look,
            "hit": lambda _: look(0),
        }

    def count(self, begin: bool) -> Counter[str]:
        """Begin to count the calls of the process, or end it and return them."""
        file = self.running.folder / "counts.json"
        file.unlink(missing_ok=True)
        os.kill(self.pid, signal.SIGUSR1)
        while not file.exists():
            time.sleep(0.01)
        return Counter({} if begin else json.loads(file.read_text()))

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of the threads of the process that live."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


@contextlib.contextmanager
def serving(tree: Path, *, counted: bool = False) -> Iterator[Service]:
    """Run the service of a checkout, with an origin on this machine."""
    with tempfile.TemporaryDirectory() as name, origin() as address:
        folder = Path(name)
        (folder / "photos").mkdir()
        shutil.copy(PICTURE, folder / "photos" / "0.jpg")
        for number in range(1, MOST):
            os.link(folder / "photos" / "0.jpg", folder / "photos" / f"{number}.jpg")
        settings = {
            "fetch__private_allowed": "127.0.0.1",
            "delivery__origins": json.dumps({"photos": f"file://{folder}/photos"}),
        }
        environment = os.environ | {
            "PYTHONPATH": str(tree.resolve() / "src"),
            _COUNTS: str(folder / "counts.json"),
        }
        program = ["-m", "tools.listening", "--serve"] if counted else ["-m", "imgsvc_cli"]
        with service(folder, program, environment, **settings) as running:
            made = running.command("signing-keys", "create")
            signer = Signer("", made["id"], made["secret"])
            yield Service(running, _listening(running.pid), address, signer)


def _listening(pid: int) -> int:
    """Return the process that listens: the one that the parent forked without another program, if any."""
    program = Path(f"/proc/{pid}/cmdline").read_bytes()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    forked = [int(child) for child in children if Path(f"/proc/{child}/cmdline").read_bytes() == program]
    return forked[0] if forked else pid


@contextlib.contextmanager
def origin() -> Iterator[str]:
    """Answer every request with the picture, by HTTP. Give the address."""
    data = PICTURE.read_bytes()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "image/jpeg")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def serve_counted(arguments: list[str]) -> None:
    """Run the command in this process, whose thread that listens counts calls between two signals.

    A coroutine that goes on counts as a call. Bodies of modules and classes do not count.
    """
    file = Path(os.environ[_COUNTS])
    calls: Counter[Any] = Counter()

    def count(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            calls[frame.f_code] += 1

    def toggle(*_: object) -> None:
        begun = sys.getprofile() is not None
        sys.setprofile(None)
        named = Counter[str]()
        for code, number in calls.items():
            path = code.co_filename.rpartition("site-packages/")[2].rpartition("/src/")[2]
            path = re.sub(r"^.*/lib/python[\d.]+/", "python/", path)
            named[f"{path}:{code.co_firstlineno} {code.co_qualname}"] += number
        new = file.with_suffix(".new")
        new.write_text(json.dumps(named))
        new.rename(file)
        calls.clear()
        if not begun:
            sys.setprofile(count)

    signal.signal(signal.SIGUSR1, toggle)
    sys.argv = ["imgsvc", *arguments]
    runpy.run_module("imgsvc_cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    sys.exit(main())
