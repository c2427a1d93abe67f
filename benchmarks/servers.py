"""imgproxy's public benchmark of image servers, which imagor repeats, with imgsvc among them.

Photographs of 2040 x 1356 come from one nginx and go out to fit 512 x 512, each in its own format, at the
qualities of that benchmark: 80 for JPEG, 75 for WebP, 65 for AVIF. Two connections, plain HTTP, nothing is
cached. The load comes from wrk (from Debian) on the same two cores. imgsvc answers the URLs of imgproxy. Both
have speed 9 for AVIF, and imgproxy writes progressive JPEGs, as in that benchmark. imgproxy takes part if
``--imgproxy`` or ``IMGPROXY`` names its program, best built on the same libvips; so does imagor with
``--imagor`` or ``IMAGOR``.

Bytes and SSIMULACRA2, against the source reduced by Lanczos, are means of several photographs.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import statistics
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

from benchmarks.harness import Bound, options_of, print_table, verdict, write_table
from benchmarks.peers import (
    CORES,
    Peer,
    serving,
    serving_files,
    serving_imagor,
    serving_imgproxy,
    serving_thumbor,
)
from benchmarks.pictures import FOLDER, picture
from benchmarks.service import Load, service, under_load, wrk
from benchmarks.truth import truth

MARKS = ("<!-- servers -->", "<!-- /servers -->")
COLUMNS = ("format", "by", "requests a second", "spread", "CPU ms a request", "bytes", "SSIMULACRA2")
NUMBER = 48
SCORED = range(0, NUMBER, 12)
SIZE = (2040, 1356)
QUALITIES = {"jpg": 80, "png": None, "webp": 75, "avif": 65}
CONNECTIONS = 2
_AVIF_SPEED = 9
_WARMING = 8

_CYCLE = """
local number = 0
request = function()
  number = (number + 1) % {number}
  return wrk.format(nil, "{start}" .. string.format("%02d", number) .. "{end}")
end
"""

Address = Callable[[str, str], str]
"""Gives the URL for a format and a file, of which the number is ``{}``."""


@attrs.frozen
class Found:
    """What a server did with one format."""

    loads: list[Load]
    size: float
    score: float


def main() -> int:
    options = options_of(__doc__, page=True, programs=("imgproxy", "imagor"), seconds=6, rounds=5)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    rows: list[tuple[str, ...]] = []
    found: dict[str, dict[str, Found]] = {}
    with _servers(options.imgproxy, options.imagor) as (folder, servers):
        for format in QUALITIES:
            found[format] = _measure(format, servers, folder, options.rounds, options.seconds)
            rows += [(format.upper(), name, *_cells(one)) for name, one in found[format].items()]
            print_table(COLUMNS, rows[-len(found[format]) :])
    write_table(options.page, MARKS, COLUMNS, rows)
    return verdict([bound for format, servers in found.items() for bound in _bounds(format, servers)])


def photographs() -> Path:
    """Return a folder of different photographs in all formats, made once."""
    import pyvips

    folder = FOLDER / "servers"
    folder.mkdir(parents=True, exist_ok=True)
    width, height = SIZE
    options = {"jpg": {"Q": 92}, "png": {"compression": 6}, "webp": {"Q": 90}, "avif": {"Q": 80, "effort": 1}}
    large = pyvips.Image.new_from_file(str(picture("12mp.jpg")))
    for index in range(NUMBER):
        left, top = index * 37 % (large.width - width), index * 53 % (large.height - height)
        part = large.crop(left, top, width, height)
        part = part.fliphor() if index % 2 else part
        for format, how in options.items():
            path = folder / f"{index:02d}.{format}"
            if not path.exists():
                unfinished = path.with_name(f"unfinished.{format}")
                part.write_to_file(str(unfinished), keep="none", **how)
                unfinished.rename(path)
    return folder


@contextlib.contextmanager
def _servers(
    imgproxy: Path | None, imagor: Path | None
) -> Iterator[tuple[Path, dict[str, tuple[Peer, Address]]]]:
    """Start all servers. Give a folder to work in, and each server with how it is asked."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        origin = stack.enter_context(serving_files(photographs(), folder)).url
        ours = stack.enter_context(_imgsvc(folder, origin))
        servers: dict[str, tuple[Peer, Address]] = {"imgsvc": (ours, _like_imgproxy(ours, origin))}
        if imgproxy:
            settings = {"IMGPROXY_JPEG_PROGRESSIVE": "1", "IMGPROXY_AVIF_SPEED": str(_AVIF_SPEED)}
            peer = stack.enter_context(serving_imgproxy(imgproxy, settings))
            servers["imgproxy"] = peer, _like_imgproxy(peer, origin)
        if imagor:
            peer = stack.enter_context(serving_imagor(imagor))
            servers["imagor"] = peer, _like_thumbor(peer, origin)
        peer = stack.enter_context(serving_thumbor(folder))
        servers["thumbor"] = peer, _like_thumbor(peer, origin)
        yield folder, servers


@contextlib.contextmanager
def _imgsvc(folder: Path, origin: str) -> Iterator[Peer]:
    """Serve URLs of imgproxy over plain HTTP, for the account that a first start made, without a cache."""
    with service(folder) as first:
        account = first.command("accounts", "list")[0]["id"]
    dialects = {"imgproxy": {"account": account, "sources": [f"{origin}/"], "avif_speed": _AVIF_SPEED}}
    settings = {
        "server.plain_http": "true", "server.host": "127.0.0.1", "workers.number": CORES,
        "rate.requests": 10**9, "rate.pictures": 10**9, "rate.misses": 10**9, "accounts.quota": 10**9,
        "fetch.private_allowed": "127.0.0.1", "cache.memory_bytes": 0, "cache.place_bytes": 0,
        "delivery.dialects": json.dumps(dialects), "server.state_folder": folder / "state",
    }  # fmt: skip
    flags = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "imgsvc_cli", "serve", *flags]
    with serving(lambda port: [*command, "--set", f"server.port={port}"]) as peer:
        yield attrs.evolve(peer, url=f"{peer.url}/imgproxy")


def _like_imgproxy(peer: Peer, origin: str) -> Address:
    def address(format: str, file: str) -> str:
        quality = QUALITIES[format]
        options = f"rs:fit:512:512/f:{format}" + (f"/q:{quality}" if quality else "")
        return f"{peer.url}/insecure/{options}/plain/{origin}/{file}"

    return address


def _like_thumbor(peer: Peer, origin: str) -> Address:
    def address(format: str, file: str) -> str:
        quality = QUALITIES[format]
        name = {"jpg": "jpeg"}.get(format, format)
        filters = f"filters:format({name})" + (f":quality({quality})" if quality else "")
        return f"{peer.url}/unsafe/fit-in/512x512/{filters}/{origin}/{file}"

    return address


def _measure(
    format: str, servers: Mapping[str, tuple[Peer, Address]], folder: Path, rounds: int, seconds: int
) -> dict[str, Found]:
    """Check and score what all servers make, then load them in turns."""
    results = {name: _results(address, format) for name, (_, address) in servers.items()}
    loads: dict[str, list[Load]] = {name: [] for name, one in results.items() if one}
    for turn in range(-1, rounds):
        for name in list(loads)[:: -1 if turn % 2 else 1]:
            peer, address = servers[name]
            load = _load(peer, address(format, f"{{}}.{format}"), seconds, folder)
            if turn >= 0:
                loads[name].append(load)
    sources = [photographs() / f"{index:02d}.{format}" for index in SCORED]
    return {
        name: Found(
            series,
            statistics.mean(map(len, results[name])),
            statistics.mean(map(truth, sources, results[name])),
        )
        for name, series in loads.items()
    }


def _results(address: Address, format: str) -> list[bytes]:
    """Return what a server makes of some photographs, or nothing if it cannot write the format."""
    from PIL import Image

    results = []
    for index in SCORED:
        url = address(format, f"{index:02d}.{format}")
        try:
            results.append(_get(url))
        except urllib.error.HTTPError as error:
            print(f"{url} is left out, as it answers {error.code}.\n")
            return []
        with Image.open(io.BytesIO(results[-1])) as image:
            made = {"JPEG": "jpg"}.get(image.format or "", (image.format or "").lower())
            if made != format:
                print(f"{url} is left out, as it answers {image.format}.\n")
                return []
            assert image.size == (512, 340), image.size
    return results


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        data: bytes = answer.read()
        return data


def _load(peer: Peer, url: str, seconds: int, folder: Path) -> Load:
    start, _, end = f"/{url.split('/', 3)[3]}".partition("{}")
    script = _CYCLE.format(number=NUMBER, start=start, end=end)
    with ThreadPoolExecutor(CONNECTIONS) as clients:  # replaces workers that the end of a load before cost
        list(clients.map(lambda index: _get(url.replace("{}", f"{index:02d}")), range(_WARMING)))
    first = url.replace("{}", "00")
    return under_load(peer.pid, lambda: wrk(first, seconds, folder, script, CONNECTIONS))


def _cells(found: Found) -> tuple[str, ...]:
    rates = [load.rate for load in found.loads]
    return (
        f"{statistics.median(rates):.1f}",
        f"{min(rates):.1f} to {max(rates):.1f}",
        f"{statistics.median(load.cpu for load in found.loads):.2f}",
        f"{found.size:,.0f}",
        f"{found.score:.1f}",
    )


def _bounds(format: str, servers: Mapping[str, Found]) -> Sequence[Bound]:
    """Compare with the fastest of the others."""
    ours = servers["imgsvc"]
    others = {name: one for name, one in servers.items() if name != "imgsvc"}
    if not others:
        return []
    name = max(others, key=lambda name: statistics.median(load.rate for load in others[name].loads))
    pairs = zip(ours.loads, others[name].loads, strict=True)
    title = f"{format.upper()} over {name}"
    rates, costs = zip(
        *((mine.rate / theirs.rate, mine.cpu / theirs.cpu) for mine, theirs in pairs), strict=True
    )
    return [
        Bound(f"{title}: rate", statistics.median(rates), 1.1, at_least=True),
        Bound(f"{title}: CPU", statistics.median(costs), 1 / 1.1),
        Bound(f"{title}: bytes", ours.size / others[name].size, 1.0),
        Bound(f"{title}: SSIMULACRA2", ours.score - others[name].score, 0.0, at_least=True),
    ]


if __name__ == "__main__":
    sys.exit(main())
