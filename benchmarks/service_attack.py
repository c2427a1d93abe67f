"""One account against another: how much slower its pictures come while the other misuses the service.

The quiet account uploads one photograph after the other. Then the same again beside each attack of another
account: endless drawings whose clients leave at once, endless drawings that are waited for, and sixty clients
that upload photographs as fast as they can.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import attrs

from benchmarks.harness import Bound, options_of, verdict
from benchmarks.pictures import picture
from benchmarks.service import BOUNDARY, Running, client, form, median_call, service

_ENDLESS = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="1000"><filter id="f">'
    + '<feTurbulence numOctaves="20" baseFrequency=".5"/>' * 500
    + '</filter><rect width="1000" height="1000" filter="url(#f)"/></svg>'
).encode()
_CLIENTS = 60


def main() -> int:
    options = options_of(__doc__, pictures=40)
    photo = form(picture("6mp.jpg").read_bytes())
    drawing = form(_ENDLESS, {"output": {"format": "png"}})
    attacks: dict[str, Callable[[Running], None]] = {
        "clients that leave": lambda running: send(running, drawing, seconds=0.2),
        "endless drawings": lambda running: send(running, drawing, seconds=60),
        "sixty uploaders": lambda running: send(running, photo, seconds=60),
    }
    bounds = []
    with tempfile.TemporaryDirectory() as name, service(Path(name)) as running:
        other = attrs.evolve(running, key=second_key(running))
        upload = client(running, photo)
        for what, attack in attacks.items():
            quiet = median_call(upload, options.pictures)
            with under(attack, other):
                time.sleep(3)
                slowed = median_call(upload, options.pictures)
            time.sleep(2)
            print(f"{what}: {quiet:.1f} ms alone, {slowed:.1f} ms beside")
            bounds.append(Bound(f"median beside {what}, of the quiet one", slowed / quiet, 2))
    return verdict(bounds)


@contextlib.contextmanager
def under(attack: Callable[[Running], None], attacker: Running) -> Iterator[None]:
    """Let clients attack again and again during the block."""
    over = threading.Event()

    def repeat() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                attack(attacker)

    threads = [threading.Thread(target=repeat, daemon=True) for _ in range(_CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()


def send(running: Running, body: bytes, *, seconds: float) -> None:
    """Upload a form, wait for an answer for so long, and leave."""
    address = urlsplit(running.url)
    assert address.hostname is not None
    head = (
        f"POST /1.0/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {running.key}\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with (
        socket.create_connection((address.hostname, address.port or 443)) as plain,
        running.tls.wrap_socket(plain, server_hostname=address.hostname) as connection,
    ):
        connection.settimeout(seconds)
        connection.sendall(head.encode() + body)
        connection.recv(1 << 16)


def second_key(running: Running) -> str:
    """Return a key of another account."""
    environment = os.environ | {"IMGSVC_SERVER_STATE_FOLDER": str(running.folder / "state")}

    def command(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "imgsvc_cli", *arguments, "--json"],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout

    account = json.loads(command("accounts", "create", "Attacker"))["id"]
    return str(json.loads(command("keys", "create", account))["secret"])


if __name__ == "__main__":
    sys.exit(main())
