"""One account against another: how much slower its pictures come while the other misuses the service.

The quiet account uploads one photograph after the other. Then the same again beside each attack of another
account: one client that sends drawings of a few bytes which take minutes, and leaves at once; sixty such
clients that leave a little later, when some drawings are begun; sixty that wait for them; sixty that upload
photographs as fast as they can; and sixty that send wrong requests over connections that stay open.

Attackers come from an address of their own, and yield the cores to the service, as they would on a machine of
their own. What they take all the same is told.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import urlsplit

import attrs

from benchmarks.harness import Bound, options_of, print_table, verdict
from benchmarks.pictures import picture
from benchmarks.service import BOUNDARY, Running, client, form, median_call, service

OTHER_ADDRESS = "127.0.0.2"
_LEAST_PRIORITY = 19
_SETTLE_SECONDS = 3.0
_ENDLESS = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="3000" height="3000"><filter id="f">'
    + '<feTurbulence numOctaves="99" baseFrequency=".5"/>' * 2
    + '</filter><rect width="3000" height="3000" filter="url(#f)"/></svg>'
).encode()


@attrs.frozen
class Attack:
    """Clients that upload a form again and again.

    They wait for the answer for so many seconds. Then they leave, unless their connections are ``kept``.
    """

    clients: int
    body: bytes
    seconds: float
    kept: bool = False


def main() -> int:
    options = options_of(__doc__, pictures=40)  # of the quiet account in each turn
    photo = form(picture("6mp.jpg").read_bytes())
    drawing = form(_ENDLESS, {"output": {"format": "png"}})
    attacks = {
        "a client that leaves": Attack(1, drawing, seconds=0),
        "sixty clients that leave": Attack(60, drawing, seconds=0.2),
        "endless drawings": Attack(60, drawing, seconds=60),
        "sixty uploaders": Attack(60, photo, seconds=60),
        "sixty wrong callers": Attack(60, form(b"", {"resize": {"width": -1}}), seconds=60, kept=True),
    }
    rows, bounds = [], []
    with tempfile.TemporaryDirectory() as name, service(Path(name)) as running:
        other = attrs.evolve(running, key=second_key(running))
        upload = client(running, photo)
        for what, attack in attacks.items():
            quiet = median_call(upload, options.pictures)
            before, started = _cpu_of_children(), time.monotonic()
            with under(_attack, attack, other):
                slowed = median_call(upload, options.pictures)
            cores = (_cpu_of_children() - before) / (time.monotonic() - started)
            time.sleep(_SETTLE_SECONDS)
            rows.append((what, f"{quiet:.1f}", f"{slowed:.1f}", f"{cores:.2f}"))
            bounds.append(Bound(f"median beside {what}, of the quiet one", slowed / quiet, 2))
    print_table(("", "ms alone", "ms beside", "cores of the attackers"), rows)
    return verdict(bounds)


@contextlib.contextmanager
def under(attack: Callable[..., None], *arguments: object) -> Iterator[None]:
    """Let a process attack during the block."""
    process = get_context("spawn").Process(target=attack, args=arguments, daemon=True)
    process.start()
    time.sleep(_SETTLE_SECONDS)
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _attack(attack: Attack, attacker: Running) -> None:
    os.nice(_LEAST_PRIORITY)
    address, tls = urlsplit(attacker.url), attacker.tls
    headers = {
        "Authorization": f"Bearer {attacker.key}",
        "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
    }

    def upload() -> None:
        connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, context=tls, source_address=(OTHER_ADDRESS, 0)
        )
        with contextlib.closing(connection):
            connection.connect()
            connection.sock.settimeout(attack.seconds or None)
            again = True
            while again:
                connection.request("POST", "/1.0/upload", attack.body, headers)
                if attack.seconds:
                    connection.getresponse().read()
                again = attack.kept

    def repeat() -> None:
        while True:
            with contextlib.suppress(OSError):
                upload()

    threads = [threading.Thread(target=repeat, daemon=True) for _ in range(attack.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _cpu_of_children() -> float:
    """Return the seconds of CPU that processes took which have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def second_key(running: Running) -> str:
    """Return a key of another account."""
    account = running.command("accounts", "create", "Attacker")["id"]
    return str(running.command("keys", "create", account)["secret"])


if __name__ == "__main__":
    sys.exit(main())
