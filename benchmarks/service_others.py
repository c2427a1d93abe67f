"""The service beside imgproxy, ipx and thumbor: requests per second and CPU of the same work.

All fetch the picture from the same nginx (from Debian) over plain HTTP. The service answers over TLS, stores
results and counts them; the others answer over plain HTTP. It is also measured with uploads. The load comes
from wrk (from Debian) over eight connections, on the same two cores. The contenders take turns, and before
it is checked that all did the same work. ipx needs node and npm. imgproxy takes part where ``--imgproxy`` or
``IMGPROXY`` names its program, best built on the same libvips.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import statistics
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from benchmarks.harness import Bound, options_of, print_table, verdict, write_table
from benchmarks.peers import (
    CORES,
    Peer,
    serving_files,
    serving_imgproxy,
    serving_ipx,
    serving_thumbor,
)
from benchmarks.pictures import picture
from benchmarks.service import BOUNDARY, Load, Running, form, service, under_load, wrk
from benchmarks.truth import truth

MARKS = ("<!-- others -->", "<!-- /others -->")
COLUMNS = (
    "work", "by", "requests a second", "spread", "CPU ms a request", "bytes", "SSIMULACRA2",
)  # fmt: skip


@attrs.frozen
class Work:
    """What all are asked for. ``effort`` is ours where the others' encoders are set to the same one."""

    title: str
    file: str
    width: int
    height: int
    format: str
    quality: int | None = None
    effort: int | None = None
    frames: int = 1

    @property
    def request(self) -> dict[str, Any]:
        output = {"format": self.format, "quality": self.quality, "effort": self.effort}
        if self.format == "jpg":
            output["encoding"] = "baseline"
        return {
            "resize": {"width": self.width, "height": self.height},
            "output": {name: value for name, value in output.items() if value is not None},
            "response": {"mode": "binary"},
        }


WORKS = (
    Work("JPEG 2725 x 2225 to 720 x 588", "6mp.jpg", 720, 588, "jpg", 80, effort=4),
    Work("JPEG 640 x 480 to WebP 200 x 150", "vga.jpg", 200, 150, "webp", 79, effort=6),
    Work("GIF of 20 frames to WebP 240 x 196", "20frames.gif", 240, 196, "webp", 79, effort=6, frames=20),
    Work("PNG 64 x 64 to 32 x 32", "small.png", 32, 32, "png"),
)


@attrs.frozen
class Call:
    """A request of HTTP; by GET if it has no body."""

    url: str
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes | None = None

    def script(self, folder: Path) -> str:
        """Return what makes wrk send it."""
        lines = [f'wrk.headers["{name}"] = "{value}"' for name, value in self.headers.items()]
        if self.body is not None:
            file = folder / "body"
            file.write_bytes(self.body)
            lines += ['wrk.method = "POST"', f'wrk.body = io.open("{file}", "rb"):read("*all")']
        return "\n".join(lines) + "\n"


Ask: TypeAlias = Callable[[Work], Call | None]
"""Gives the request for a work, or None if the server cannot do it."""


def main() -> int:
    options = options_of(__doc__, page=True, programs=("imgproxy",), seconds=6, rounds=5)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    rows: list[tuple[str, ...]] = []
    found: dict[tuple[Work, str], tuple[list[Load], int]] = {}
    with contenders(options.imgproxy) as (folder, asked, get):
        for work in WORKS:
            calls = {name: (peer, call) for name, (peer, ask) in asked.items() if (call := ask(work))}
            answers = {name: get(call) for name, (_, call) in calls.items()}
            check_alike(work, answers)
            loads: dict[str, list[Load]] = {name: [] for name in calls}
            for turn in range(-1, options.rounds):
                for name in list(calls)[:: -1 if turn % 2 else 1]:
                    peer, call = calls[name]
                    send = functools.partial(wrk, call.url, options.seconds, folder, call.script(folder))
                    load = under_load(peer.pid, send)
                    if turn >= 0:
                        loads[name].append(load)
            for name, series in loads.items():
                found[work, name] = series, len(answers[name])
                rows.append((work.title, name, *_row(series, answers[name], work)))
            print_table(COLUMNS, rows[-len(calls) :])
    write_table(options.page, MARKS, COLUMNS, rows)
    return verdict(list(_bounds(found)))


@contextlib.contextmanager
def contenders(
    imgproxy: Path | None,
) -> Iterator[tuple[Path, dict[str, tuple[Peer, Ask]], Callable[[Call], bytes]]]:
    """Start all servers. Give a folder to work in, what to ask of each, and how to get one answer."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        origin = stack.enter_context(serving_files(picture(WORKS[0].file).parent, folder)).url
        running = stack.enter_context(service(folder, fetch__private_allowed="127.0.0.1", workers__queue=256))
        ours = Peer(running.url, running.pid)
        ipx = stack.enter_context(serving_ipx(origin))
        thumbor = stack.enter_context(serving_thumbor(folder))
        asked: dict[str, tuple[Peer, Ask]] = {
            "imgsvc": (ours, functools.partial(_fetch, running, origin)),
            "imgsvc, upload": (ours, functools.partial(_upload, running)),
        }
        if imgproxy:
            peer = stack.enter_context(serving_imgproxy(imgproxy))
            asked["imgproxy"] = peer, functools.partial(_imgproxy, peer, origin)
        else:
            print("imgproxy is left out, as neither --imgproxy nor IMGPROXY names its program.\n")
        asked["ipx"] = ipx, functools.partial(_ipx, ipx, origin)
        asked["thumbor"] = thumbor, functools.partial(_thumbor, thumbor, origin)

        def get(call: Call) -> bytes:
            request = urllib.request.Request(call.url, call.body, dict(call.headers))
            with urllib.request.urlopen(request, timeout=60, context=running.tls) as answer:
                data: bytes = answer.read()
                return data

        yield folder, asked, get


def check_alike(work: Work, answers: Mapping[str, bytes]) -> None:
    """See that all answers have the same size, format and frames, and that JPEGs have the same tables."""
    from PIL import Image, JpegImagePlugin

    def facts(data: bytes) -> tuple[object, ...]:
        with Image.open(io.BytesIO(data)) as image:
            common = (image.size, image.format, getattr(image, "n_frames", 1))
            if not isinstance(image, JpegImagePlugin.JpegImageFile):
                return common
            sampling = JpegImagePlugin.get_sampling(image)
            return (*common, sampling, "progressive" in image.info, image.quantization)

    found = {name: facts(data) for name, data in answers.items()}
    assert found["imgsvc"][0] == (work.width, work.height), found["imgsvc"]
    assert found["imgsvc"][2] == work.frames, found["imgsvc"]
    for name, one in found.items():
        assert one == found["imgsvc"], f"{work.title}: {name} did other work: {one}, {found['imgsvc']}"


def _fetch(running: Running, origin: str, work: Work) -> Call:
    body = json.dumps({"url": f"{origin}/{work.file}", **work.request}).encode()
    return Call(f"{running.url}/1.0/fetch", _headers(running, "application/json"), body)


def _upload(running: Running, work: Work) -> Call:
    body = form(picture(work.file).read_bytes(), work.request)
    return Call(
        f"{running.url}/1.0/upload", _headers(running, f"multipart/form-data; boundary={BOUNDARY}"), body
    )


def _headers(running: Running, content_type: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {running.key}", "Content-Type": content_type}


def _imgproxy(peer: Peer, origin: str, work: Work) -> Call:
    options = f"rs:force:{work.width}:{work.height}" + (f"/q:{work.quality}" if work.quality else "")
    return Call(f"{peer.url}/insecure/{options}/plain/{origin}/{work.file}@{work.format}")


def _ipx(peer: Peer, origin: str, work: Work) -> Call:
    format = {"jpg": "jpeg"}.get(work.format, work.format)
    options = [f"f_{format}", f"s_{work.width}x{work.height}", "fit_fill"]
    options += [f"q_{work.quality}"] if work.quality else []
    options += ["animated"] if work.frames > 1 else []
    return Call(f"{peer.url}/{','.join(options)}/{origin}/{work.file}")


def _thumbor(peer: Peer, origin: str, work: Work) -> Call | None:
    if work.frames > 1:
        return None
    format = {"jpg": "jpeg"}.get(work.format, work.format)
    filters = f"format({format})" + (f":quality({work.quality})" if work.quality else "")
    url = f"{peer.url}/unsafe/{work.width}x{work.height}/filters:{filters}/{origin}/{work.file}"
    # Connections that are kept all go to one of its processes.
    return Call(url, {"Connection": "close"})


def _row(series: list[Load], answer: bytes, work: Work) -> tuple[str, ...]:
    rates = [load.rate for load in series]
    return (
        f"{statistics.median(rates):.1f}",
        f"{min(rates):.1f} to {max(rates):.1f}",
        f"{statistics.median(load.cpu for load in series):.2f}",
        f"{len(answer):,}",
        f"{truth(picture(work.file), answer):.1f}",
    )


def _bounds(found: Mapping[tuple[Work, str], tuple[list[Load], int]]) -> Iterator[Bound]:
    large, small, animated, tiny = WORKS

    def over(work: Work, other: str) -> float:
        """Return the median over the rounds of our rate over that of another one."""
        pairs = zip(found[work, "imgsvc"][0], found[work, other][0], strict=True)
        return statistics.median(mine.rate / theirs.rate for mine, theirs in pairs)

    yield Bound(f"over ipx, {large.title}", over(large, "ipx"), 1.2, at_least=True)
    if (large, "imgproxy") not in found:
        return
    for work, limit in ((large, 1.0), (small, 0.95), (animated, 1.0), (tiny, 0.85)):
        yield Bound(f"over imgproxy, {work.title}", over(work, "imgproxy"), limit, at_least=True)
    larger = found[animated, "imgsvc"][1] / found[animated, "imgproxy"][1]
    yield Bound(f"bytes over imgproxy, {animated.title}", larger, 1.0)


if __name__ == "__main__":
    sys.exit(main())
