"""No parameter is lost on the way: two values make two results, the same from Python, command and service."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import aiohttp
import numpy as np
import pytest
import pyvips

import imgsvc_core as imgsvc
from imgsvc_core.spec.kinds import Boolean, Choice, HexColor, Integer, Number
from imgsvc_core.spec.options import OPTION_NAMES
from tests.http.calls import upload
from tests.http.service_process import Service, running
from tests.support import forked_python
from tests.support.photos import as_vips, astronaut, coffee, cut_out

Request = dict[str, dict[str, Any]]
Results = dict[tuple[str, int], bytes]
OPERATIONS = {item.key: item for item in (*imgsvc.OPERATIONS.values(), *imgsvc.FILTERS)}
FILTER_KEYS = [item.key for item in imgsvc.FILTERS]

BOX = {"resize": {"width": 40, "height": 40}}
SMALL = {"crop": {"width": 20, "height": 20}}
FIT = {"resize": {"width": 40, "height": 40, "mode": "fit"}}
WIDE = {"resize": {"width": 40, "height": 10, "mode": "fit"}}
ROUNDED = {"mask": {"shape": "rounded", "radius": 12}}
BACKED = {"padding": {"size": 5}}
RAMP = {"kind": "gradient", "from": "000", "to": "fff"}
MARK = {"watermark": {"id": "large", "scale": 0.5}}

# What else has to be asked for so that a parameter matters, and two of its values.
CASES: Mapping[str, tuple[Request, Any, Any]] = {
    "rotate.angle": ({}, 10, 90),
    "rotate.background": ({"rotate": {"angle": 30}}, "f00", "00f"),
    "trim.threshold": ({}, 40, 120),
    "trim.color": ({"trim": {"threshold": 60}}, "fff", "000"),
    "trim.symmetric": ({"trim": {"threshold": 10}}, "horizontal", "vertical"),
    "crop.mode": (SMALL, "rect", "smart"),
    "crop.width": ({"crop": {"height": 20}}, 20, 30),
    "crop.height": ({"crop": {"width": 20}}, 20, 30),
    "crop.x": (SMALL, 0, 40),
    "crop.y": (SMALL, 0, 40),
    "crop.gravity": (SMALL, "left", "right"),
    "crop.focus_x": ({"crop": {**SMALL["crop"], "gravity": "focus", "focus_y": 0.5}}, 0.3, 0.6),
    "crop.focus_y": ({"crop": {**SMALL["crop"], "gravity": "focus", "focus_x": 0.5}}, 0.3, 0.6),
    "crop.offset_x": (SMALL, -5, 9),
    "crop.offset_y": (SMALL, -5, 9),
    "crop.ratio": ({"crop": {"mode": "ratio"}}, "1:1", "2:1"),
    "crop.padding": ({"crop": {"mode": "face"}}, 0.2, 1),
    "crop.faces": ({"crop": {"mode": "face"}}, "largest", "all"),
    "resize.width": ({}, 20, 30),
    "resize.height": ({}, 20, 30),
    "resize.min_width": ({}, 110, 120),
    "resize.min_height": ({}, 110, 120),
    "resize.mode": (BOX, "fit", "fill"),
    "resize.gravity": (FIT, "left", "right"),
    "resize.focus_x": ({"resize": {**FIT["resize"], "gravity": "focus", "focus_y": 0.5}}, 0.3, 0.6),
    "resize.focus_y": ({"resize": {**WIDE["resize"], "gravity": "focus", "focus_x": 0.5}}, 0.3, 0.6),
    "resize.offset_x": (FIT, 1, 4),
    "resize.offset_y": (WIDE, 1, 4),
    "resize.background": ({"resize": {**BOX["resize"], "mode": "fill"}}, "f00", "00f"),
    "resize.upscale": ({"resize": {"width": 200}}, True, False),
    "resize.scaling": ({"resize": {"width": 20}}, "fast", "exact"),
    "scale.size": ({}, 0.5, 0.25),
    "scale.ratio": ({"scale": {"size": 0.5}}, 1, 0.5),
    "scale.scaling": ({"scale": {"size": 0.2}}, "fast", "exact"),
    "halftone.value": ({}, 60, 100),
    "monochrome.color": ({"monochrome": {"value": 80}}, "f00", "00f"),
    "monochrome.value": ({"monochrome": {"color": "f80"}}, 20, 80),
    "duotone.light": ({"duotone": {"dark": "000"}}, "f00", "00f"),
    "duotone.dark": ({"duotone": {"light": "fff"}}, "f00", "00f"),
    "isolate.threshold": ({"isolate": {"color": "840"}}, 0.05, 0.5),
    "blur.mode": ({"blur": {"value": 40}}, "motion", "zoom"),
    "blur.value": ({"blur": {"mode": "gaussian"}}, 20, 60),
    "blur.angle": ({"blur": {"mode": "motion", "value": 40}}, 0, 45),
    "vignette.value": ({"vignette": {"radius": 20}}, 20, 80),
    "vignette.radius": ({"vignette": {"value": 80}}, 20, 60),
    "mask.radius": ({"mask": {"shape": "rounded"}}, 4, 20),
    "mask.background": (ROUNDED, "f00", "00f"),
    "canvas.width": ({}, 110, 120),
    "canvas.height": ({}, 110, 120),
    "canvas.ratio": ({}, "2:1", "3:1"),
    "canvas.gravity": ({"canvas": {"width": 120}}, "left", "right"),
    "canvas.offset_x": ({"canvas": {"width": 120}}, 1, 4),
    "canvas.offset_y": ({"canvas": {"height": 120}}, 1, 4),
    "canvas.background": ({"canvas": {"width": 120}}, "f00", "00f"),
    "padding.size": ({}, 3, 5),
    "padding.top": ({}, 3, 5),
    "padding.right": ({}, 3, 5),
    "padding.bottom": ({}, 3, 5),
    "padding.left": ({}, 3, 5),
    "padding.background": ({"padding": {"size": 5}}, "f00", "00f"),
    "background.kind": (BACKED, "blur", "average"),
    "background.color": (BACKED, "f00", "00f"),
    "background.amount": ({**BACKED, "background": {"kind": "blur"}}, 20, 80),
    "background.from": ({**BACKED, "background": {"kind": "gradient", "to": "fff"}}, "f00", "00f"),
    "background.to": ({**BACKED, "background": {"kind": "gradient", "from": "fff"}}, "f00", "00f"),
    "background.angle": ({**BACKED, "background": RAMP}, 0, 90),
    "background.radial": ({**BACKED, "background": RAMP}, True, False),
    "border.size": ({}, 3, 5),
    "border.color": ({"border": {"size": 5}}, "f00", "00f"),
    "border.radius": ({"border": {"size": 5}}, 5, 20),
    "border.background": ({"border": {"size": 5, "radius": 20}}, "f00", "00f"),
    "watermark.id": ({}, "small", "large"),
    "watermark.gravity": (MARK, "left", "right"),
    "watermark.padding": ({"watermark": {**MARK["watermark"], "gravity": "left"}}, 2, 9),
    "watermark.x": (MARK, 2, 9),
    "watermark.y": (MARK, 2, 9),
    "watermark.opacity": (MARK, 0.3, 0.9),
    "watermark.scale": ({"watermark": {"id": "large"}}, 0.3, 0.6),
    "watermark.width": ({"watermark": {"id": "large"}}, 20, 30),
    "watermark.height": ({"watermark": {"id": "large"}}, 20, 30),
    "watermark.fit": ({"watermark": {"id": "large"}}, True, False),
    "output.format": ({}, "png", "webp"),
    "output.lossless": ({"output": {"format": "webp"}}, True, False),
    "output.effort": ({"output": {"format": "png"}}, 1, 9),
    "output.subsampling": ({}, "420", "444"),
    "output.colors": ({"output": {"format": "png"}}, 8, 64),
    "output.metadata": ({}, "strip", "keep"),
    "output.if_smaller": ({"output": {"quality": 99}}, True, False),
    "output.flatten": ({"output": {"format": "png"}}, True, False),
    "output.background": ({"output": {"format": "jpg"}}, "f00", "00f"),
    "output.max_bytes": ({}, 1000, 2000),
    "output.look": ({"output": {"format": "jpg"}}, 50, 80),
}
WHOLE = {"mask.shape": (ROUNDED, {"mask": {"shape": "ellipse"}})}
SOURCES = {
    "crop.padding": "faces",
    "crop.faces": "faces",
    "output.background": "transparent",
    "output.flatten": "transparent",
    "trim.threshold": "transparent",
    "trim.color": "framed",
    "trim.symmetric": "framed",
    "auto.enhance": "dull",
}
CHANGES_NO_PIXEL = {"output.facts"}
PATHS = [
    path
    for key, operation in OPERATIONS.items()
    for name in imgsvc.params(operation)
    if (path := f"{key}.{name}") not in CHANGES_NO_PIXEL
]


def requests_of(path: str) -> tuple[Request, Request]:
    """Two requests that differ in one parameter."""
    if path in WHOLE:
        return WHOLE[path]
    key, _, name = path.partition(".")
    context, *values = CASES[path] if path in CASES else ({}, *two_values(key, name))
    first, second = ({**context, key: {**context.get(key, {}), name: value}} for value in values)
    return first, second


def two_values(key: str, name: str) -> tuple[Any, Any]:
    match imgsvc.params(OPERATIONS[key])[name].kind:
        case Boolean():
            return True, False
        case Choice(options=options):
            return options[0], options[1]
        case HexColor():
            return "f00", "00f"
        case Integer(minimum=low, maximum=high):
            return low + (high - low) // 4, low + 3 * (high - low) // 4
        case Number(minimum=low, maximum=high):
            return low + (high - low) / 4, low + 3 * (high - low) / 4
    raise AssertionError(f"give two values of {key}.{name}")


def source_of(path: str) -> bytes:
    return source(SOURCES.get(path, "photo"))


@cache
def source(name: str) -> bytes:
    if name == "faces":
        large, small = as_vips(astronaut()), as_vips(astronaut()).resize(0.6)
        both = large.join(small, "horizontal", expand=True, align="centre")
        return bytes(both.jpegsave_buffer(Q=90))
    if name == "transparent":
        return bytes(as_vips(cut_out()).resize(0.15).pngsave_buffer())
    photo = as_vips(coffee()).resize(0.16).copy()
    if name == "framed":
        light = photo.embed(9, 4, photo.width + 30, photo.height + 20, extend="white")
        return bytes(light.pngsave_buffer())
    if name == "dull":
        photo = (photo * 0.3 + 90).cast("uchar")
    photo.set_type(pyvips.GValue.gstr_type, "exif-ifd0-Copyright", "Somebody")
    return bytes(photo.jpegsave_buffer(Q=90))


@cache
def mark(name: str) -> bytes:
    side = {"small": 10, "large": 120}[name]
    ramp = np.linspace(0, 255, side * side, dtype=np.uint8).reshape(side, side)
    return bytes(as_vips(np.dstack([ramp, ramp[::-1], ramp.T, np.full_like(ramp, 200)])).pngsave_buffer())


@pytest.fixture(scope="module")
def from_python() -> Results:
    return {
        (path, index): imgsvc.process(source_of(path), document(request), watermarks=mark).data or b""
        for path in PATHS
        for index, request in enumerate(requests_of(path))
    }


def document(request: Request, marks: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The JSON of a request, with filters in their place and other ids of watermarks."""
    parts = {key: part for key, part in request.items() if key not in FILTER_KEYS}
    filters = {key: part for key, part in request.items() if key in FILTER_KEYS}
    if marks and "watermark" in parts:
        parts["watermark"] = {**parts["watermark"], "id": marks[parts["watermark"]["id"]]}
    return {**parts, "filter": filters} if filters else parts


RUN_ALL = """
import json, sys
from imgsvc_cli.app import run
codes = [run(arguments) for arguments in json.load(sys.stdin)]
print(json.dumps(codes), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def from_command(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("command")
    for name in ("photo", "faces", "transparent", "dull", "framed"):
        (folder / name).write_bytes(source(name))
    for name in ("small", "large"):
        (folder / name).write_bytes(mark(name))
    calls = []
    for path in PATHS:
        for index, request in enumerate(requests_of(path)):
            name = SOURCES.get(path, "photo")
            calls.append(["process", name, "-o", f"{path}.{index}/", *flags_of(request)])
    done = forked_python.run("-c", RUN_ALL, stdin=json.dumps(calls).encode(), folder=folder)
    assert done.returncode == 0, done.stderr
    assert not any(json.loads(done.stderr.splitlines()[-1])), done.stderr
    return {
        (path, index): next((folder / f"{path}.{index}").iterdir()).read_bytes()
        for path in PATHS
        for index in (0, 1)
    }


def flags_of(request: Request) -> Iterator[str]:
    for key, part in request.items():
        for name, value in part.items():
            flag = OPTION_NAMES[key, name]
            if isinstance(value, bool):
                yield f"--{flag}" if value else f"--no-{flag}"
            else:
                yield f"--{flag}={value}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("service") / "state") as service:
        yield service


@pytest.fixture(scope="module")
def from_service(service: Service) -> Results:
    async def process_all() -> Results:
        async with service.client() as client:
            marks = {name: (await _add_mark(client, name)) for name in ("small", "large")}
            return {
                (path, index): await _process(client, source_of(path), document(request, marks))
                for path in PATHS
                for index, request in enumerate(requests_of(path))
            }

    return asyncio.run(process_all())


async def _add_mark(client: aiohttp.ClientSession, name: str) -> str:
    reply = await upload(client, mark(name), path="/1.0/watermarks")
    return str(reply.json["watermark"]["id"])


async def _process(
    client: aiohttp.ClientSession, picture: bytes, asked: Mapping[str, Any], **headers: str
) -> bytes:
    reply = await upload(client, picture, {**asked, "response": {"mode": "binary"}}, headers=headers)
    assert reply.status == 200, reply.metadata
    return reply.body


def test_two_values_make_two_results(from_python: Results) -> None:
    assert [path for path in PATHS if from_python[path, 0] == from_python[path, 1]] == []


def test_the_command_makes_the_same_of_its_flags(from_python: Results, from_command: Results) -> None:
    assert [case for case in from_python if from_command[case] != from_python[case]] == []


def test_the_service_makes_the_same(from_python: Results, from_service: Results) -> None:
    assert [case for case in from_python if from_service[case] != from_python[case]] == []


@pytest.mark.parametrize(
    ("accept", "format"),
    [
        ("image/avif, image/webp;q=0.5", "avif"),
        ("image/webp, image/avif;q=0.5", "webp"),
        ("image/png, image/webp;q=0.9, image/avif;q=0.1", "png"),
    ],
)
def test_the_preferred_type_of_accept_is_written(accept: str, format: str, service: Service) -> None:
    asked = {"output": {"format": "auto"}}

    async def process_one() -> bytes:
        async with service.client() as client:
            return await _process(client, source("photo"), asked, Accept=accept)

    answer = asyncio.run(process_one())
    assert imgsvc.inspect(answer).format == format
    assert answer == imgsvc.process(source("photo"), asked, accept=accept).data


def test_every_argument_of_process_matters() -> None:
    facts = imgsvc.process(source("photo"), digest=True, name="a.jpg")
    assert (facts.input.name, imgsvc.process(source("photo")).input.name) == ("a.jpg", "")
    assert (len(facts.output.sha256 or ""), imgsvc.process(source("photo")).output.sha256) == (64, None)
    for limits in (imgsvc.Limits(source_bytes=100), imgsvc.Limits(output_side=10)):
        with pytest.raises(imgsvc.LimitExceeded):
            imgsvc.process(source("photo"), limits=limits)


def test_libvips_has_no_more_threads_than_it_may() -> None:
    few, many = (
        int(subprocess.check_output([sys.executable, "-c", THREADS, count])) for count in ("1", "32")
    )
    assert few <= 8  # a few for other purposes
    assert many >= 16


THREADS = """
import contextlib, sys, threading, pyvips
from pathlib import Path
import imgsvc_core

def watch():
    global most
    while not done.wait(0.001):
        names = []
        for path in Path("/proc/self/task").glob("*/comm"):
            with contextlib.suppress(OSError):  # the thread has ended
                names.append(path.read_text().strip())
        most = max(most, names.count("libvips worker"))

most, done = 0, threading.Event()
noise = pyvips.Image.gaussnoise(2000, 2000).cast("uchar").copy(interpretation="b-w")
picture = noise.pngsave_buffer(compression=0)
watcher = threading.Thread(target=watch)
watcher.start()
imgsvc_core.process(picture, {"filter": {"blur": {"mode": "gaussian", "value": 5}}}, threads=int(sys.argv[1]))
done.set()
watcher.join()
print(most)
"""
