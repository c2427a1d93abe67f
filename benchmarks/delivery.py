"""Pictures by URL over HTTP: hits of both tiers of the cache, 304, misses, and a thousand requests at once.

``python -m benchmarks.delivery [PAGE]`` loads a service with ``wrk`` (a package of Debian), over TLS and
without it, and writes its table into a page of the documentation.
The bounds are on CPU time of the service's own process, as requests per second of one core, since other
programs and ``wrk`` itself share the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import attrs
from tests.support.processes import listeners_of
from yarl import URL

from benchmarks.harness import Bound, options_of, print_table, verdict, write_table
from benchmarks.peers import own_cpu_seconds
from benchmarks.pictures import picture
from benchmarks.service import Load, Running, service, wrk
from imgsvc_urls import Signer

MARKS = "<!-- delivery -->", "<!-- /delivery -->"
COLUMNS = ("answer", "over", "requests a second", "CPU µs a request", "requests a second of a core")
SIZE = "430x"  # some 30 kB of JPEG
MISSES = 400
AT_ONCE = 1000
_KNOWN = """
wrk.headers["If-None-Match"] = [[{etag}]]
"""


@attrs.frozen
class Delivering:
    """A service with a folder of pictures, and what signs for it."""

    running: Running
    signer: Signer
    folder: Path
    pid: int

    def url(self, **options: Any) -> str:
        return self.signer.url("photos/photo.jpg", **options)

    def cpu(self) -> float:
        """CPU milliseconds of the service's own process, which does not work on pixels."""
        return 1000 * own_cpu_seconds(self.pid)


def main() -> int:
    """Print requests per second of each kind; return 1 if a bound is missed."""
    options = options_of(__doc__, page=True, seconds=10)
    if shutil.which("wrk") is None:
        sys.exit("The benchmark needs wrk, a package of Debian: apt-get install wrk")
    rows, bounds = list[tuple[str, ...]](), []
    for kind in ("TLS", "plain"):
        with delivering(kind) as memory:
            loads = {"hit of memory": (hits(memory, options.seconds), 2500)}
            loads["304"] = (hits(memory, options.seconds, known=True), 4000)
            miss = asyncio.run(misses(memory))
        with delivering(kind, cache__memory_bytes=0) as folder:
            loads["hit of folder"] = (hits(folder, options.seconds), 1500)
        rows += [_row(what, kind, load) for what, (load, _) in loads.items()]
        rows.append(_row("miss, without its pixels", kind, miss))
        for what, (load, limit) in loads.items():
            per_core = 1000 / load.cpu
            bounds.append(Bound(f"{what}, {kind}, per second of a core", per_core, limit, at_least=True))
        bounds.append(Bound(f"miss over its pixels, {kind}", miss.cpu, 3, unit=" ms"))
    print_table(COLUMNS, rows)
    write_table(options.page, MARKS, COLUMNS, rows)
    with delivering("plain") as cold:
        made = asyncio.run(at_once(cold))
    bounds.append(Bound(f"computations of {AT_ONCE:,} requests at once", made, 1))
    return verdict(bounds)


def _row(what: str, kind: str, load: Load) -> tuple[str, ...]:
    return what, kind, f"{load.rate:,.0f}", f"{1000 * load.cpu:,.0f}", f"{1000 / load.cpu:,.0f}"


@contextlib.contextmanager
def delivering(kind: str, **settings: object) -> Iterator[Delivering]:
    """A service over TLS or plain HTTP."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "photos").mkdir()
        shutil.copy(picture("6mp.jpg"), folder / "photos" / "photo.jpg")
        settings |= {
            "delivery__origins": json.dumps({"photos": f"file://{folder}/photos"}),
            "server__plain_http": "false" if kind == "TLS" else "true",
        }
        with service(folder, **settings) as running:
            key = running.command("signing-keys", "create")
            yield Delivering(
                running, Signer(running.url, key["id"], key["secret"]), folder, listeners_of(running.pid)[0]
            )


def hits(site: Delivering, seconds: int, *, known: bool = False) -> Load:
    """Load the service with requests for a picture that it has, by clients that may have it, too."""
    url = site.url(resize=SIZE)
    etag = asyncio.run(_asked(site, [url], 1))[0]["ETag"]
    time.sleep(1)  # for the file of the cache, which is written in the background
    script = _KNOWN.format(etag=etag) if known else ""
    wrk(url, 2, site.folder, script)
    began = site.cpu()
    rate = wrk(url, seconds, site.folder, script)
    return Load(rate, (site.cpu() - began) / (rate * seconds))


async def misses(site: Delivering) -> Load:
    """Load the service with requests for pictures that have to be made, over two connections."""
    await _asked(site, [site.url(resize="100x", sepia=1)], 1)
    idle, began = site.cpu(), time.perf_counter()
    await asyncio.sleep(5)
    idle = (site.cpu() - idle) / (time.perf_counter() - began)
    before, began = site.cpu(), time.perf_counter()
    answers = await _asked(site, [site.url(resize=f"{30 + number}x") for number in range(MISSES)], 2)
    assert {answer["X-Svc-Cache"] for answer in answers} == {"miss"}
    seconds = time.perf_counter() - began
    await asyncio.sleep(1)  # for files of the cache, which are written afterwards
    worked = site.cpu() - before - idle * (time.perf_counter() - began)
    return Load(MISSES / seconds, worked / MISSES)


async def at_once(site: Delivering) -> int:
    """How many times a picture is made that many ask for at the same time."""
    answers = await _asked(site, [site.url(resize="640x", sharpen=3)] * AT_ONCE, AT_ONCE)
    return Counter(answer["X-Svc-Cache"] for answer in answers)["miss"]


async def _asked(site: Delivering, urls: list[str], connections: int) -> list[Mapping[str, str]]:
    """The headers of the answers to some URLs."""
    tls = site.running.tls if urls[0].startswith("https") else False

    async def ask(url: str) -> Mapping[str, str]:
        async with client.get(URL(url, encoded=True)) as answer:
            assert answer.status == 200, await answer.text()
            await answer.read()
            return answer.headers

    connector = aiohttp.TCPConnector(ssl=tls, limit=connections)
    async with aiohttp.ClientSession(connector=connector) as client:
        return await asyncio.gather(*map(ask, urls))


if __name__ == "__main__":
    sys.exit(main())
