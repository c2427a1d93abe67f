"""`aprocess` on an event loop: results, limits, isolation, cancelling, and a loop that goes on."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
import pytest_asyncio

import imgsvc_core as imgsvc
from imgsvc_core import asynchronous
from tests.support import encoded
from tests.support.photos import as_vips, photo
from tests.support.processes import workers_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

SMALL = {"resize": {"width": 30}}
ISOLATED = pytest.mark.parametrize("isolated", [True, False], ids=["isolated", "thread"])


@pytest_asyncio.fixture(loop_scope="module", scope="module", autouse=True)
async def begun() -> AsyncIterator[None]:
    """The processes have begun, so that tests measure the work alone."""
    await imgsvc.aprocess(encoded.jpeg().data, SMALL)
    yield


def endless() -> dict[str, Any]:
    """A request that takes minutes of computing, which libvips can stop, on few pixels."""
    blur = {"blur": {"mode": "motion", "value": 100, "angle": 45}}
    return {"resize": {"width": 12_000, "height": 12_000, "mode": "stretch"}, "filter": [blur] * 9}


NO_LIMITS = attrs.evolve(imgsvc.Limits.none(), seconds=None)


def noise(side: int) -> Any:
    return np.random.default_rng(1).integers(0, 256, (side, side, 3), np.uint8)


@ISOLATED
async def test_results_are_those_of_process(isolated: bool, tmp_path: Path) -> None:
    data = encoded.jpeg().data
    result = await imgsvc.aprocess(data, SMALL, isolated=isolated)
    assert result.data == imgsvc.process(data, SMALL, threads=1).data
    target = tmp_path / "small.webp"
    written = await imgsvc.aprocess(io.BytesIO(data), SMALL, target, isolated=isolated, name="a.jpg")
    assert (written.data, written.output.format, written.input.name) == (None, "webp", "a.jpg")
    assert imgsvc.inspect(target).width == 30
    file = io.BytesIO()
    assert (await imgsvc.aprocess(data, SMALL, file, isolated=isolated)).data is None
    assert file.getvalue() == result.data


@ISOLATED
@pytest.mark.parametrize("kind", ["array", "pillow", "path", "file", "result", "view"])
async def test_sources_of_every_kind(kind: str, isolated: bool, tmp_path: Path) -> None:
    from PIL import Image

    path = tmp_path / "photo.png"
    path.write_bytes(encoded.png().data)
    sources: dict[str, Any] = {
        "array": photo("cat"),
        "pillow": Image.fromarray(photo("cat")),
        "path": path,
        "file": path.open("rb"),
        "result": imgsvc.process(path),
        "view": memoryview(path.read_bytes()),
    }
    try:
        assert (await imgsvc.aprocess(sources[kind], SMALL, isolated=isolated)).output.width == 30
    finally:
        sources["file"].close()


@ISOLATED
async def test_pillow_images_lose_nothing_on_the_way(isolated: bool, tmp_path: Path) -> None:
    from PIL import Image

    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(photo("cat")).save(tmp_path / "turned.tiff", exif=turned)
    (tmp_path / "moving.gif").write_bytes(encoded.gif_animated().data)
    for name, format in (("turned.tiff", "png"), ("moving.gif", "gif")):
        spec = {**SMALL, "output": {"format": format}}
        with Image.open(tmp_path / name) as opened:
            result = await imgsvc.aprocess(opened, spec, isolated=isolated)
            assert result.data == imgsvc.process(opened, spec).data


@ISOLATED
async def test_a_pillow_image_that_cannot_be_read_is_told(isolated: bool) -> None:
    from PIL import Image

    cut = Image.open(io.BytesIO(encoded.jpeg().data[:2000]))
    with pytest.raises(imgsvc.SourceUnreachable, match=r"Source Pillow image cannot be read: .* truncated"):
        await imgsvc.aprocess(cut, SMALL, isolated=isolated)


@ISOLATED
async def test_pictures_of_layers_are_sent(isolated: bool) -> None:
    logo = encoded.png_alpha().data
    spec = {
        "layers": [{"picture": {"source": "logo"}}, {"picture": {"id": "mark"}}],
        "output": {"format": "png"},
    }
    result = await imgsvc.aprocess(
        photo("cat"), spec, watermarks={"logo": io.BytesIO(logo), "mark": logo}, isolated=isolated
    )
    assert result.data == imgsvc.process(photo("cat"), spec, watermarks={"logo": logo, "mark": logo}).data
    with pytest.raises(imgsvc.SpecError, match="must be a known watermark") as caught:
        await imgsvc.aprocess(photo("cat"), spec, watermarks={"logo": logo}, isolated=isolated)
    assert caught.value.problems[0].path == "layers[1].picture.id"


@ISOLATED
async def test_the_name_of_an_open_file_is_told(isolated: bool, tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    path.write_bytes(encoded.png().data)
    with path.open("rb") as file:
        assert (await imgsvc.aprocess(file, SMALL, isolated=isolated)).input.name == "photo.png"


@ISOLATED
async def test_a_file_that_does_not_change_is_left_alone(isolated: bool, tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(encoded.jpeg().data)
    imgsvc.process(path, {"output": {"keep_pixels": True}}, path)
    before = path.stat()
    await imgsvc.aprocess(path, {"output": {"keep_pixels": True}}, path, isolated=isolated)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


async def test_a_file_that_changes_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(encoded.jpeg().data)
    with GatedPool() as pool:
        task = asyncio.create_task(imgsvc.aprocess(path, SMALL, path, pool=pool))
        await asyncio.to_thread(pool.asked.wait)
        path.write_bytes(encoded.jpeg_gray().data)
        pool.gate.set()
        with pytest.raises(imgsvc.TargetError, match="has changed while it was processed"):
            await task
    assert path.read_bytes() == encoded.jpeg_gray().data
    assert list(tmp_path.iterdir()) == [path]


class GatedPool(imgsvc.WorkerPool):
    """A pool that notes what it gets, and takes it when its gate is open."""

    def __init__(self) -> None:
        super().__init__(1)
        self.asked, self.gate = threading.Event(), threading.Event()
        self.taken: list[tuple[tuple[Any, ...], Future[Any]]] = []

    def submit(self, function: Any, /, *args: Any, **limits: Any) -> Future[Any]:
        self.asked.set()
        self.gate.wait()
        future = super().submit(function, *args, **limits)
        self.taken.append((args, future))
        return future


async def test_isolated_work_has_one_thread_unless_told_otherwise() -> None:
    with GatedPool() as pool:
        pool.gate.set()
        await imgsvc.aprocess(photo("cat"), SMALL, pool=pool)
        await imgsvc.aprocess(photo("cat"), SMALL, pool=pool, threads=2)
    assert [args[-1]["threads"] for args, _ in pool.taken] == [1, 2]


async def test_work_that_reaches_its_pool_after_it_is_cancelled_is_cancelled_there() -> None:
    with GatedPool() as pool:
        task = asyncio.create_task(imgsvc.aprocess(photo("cat"), endless(), pool=pool, limits=NO_LIMITS))
        await asyncio.to_thread(pool.asked.wait)
        task.cancel()
        await asyncio.sleep(0)
        pool.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not pool.taken:
            await asyncio.sleep(0.01)
        [(_, future)] = pool.taken
        await asyncio.to_thread(wait, [future], 60)
        assert future.cancelled()


async def test_what_cannot_be_sent_to_a_process_is_named() -> None:
    with pytest.raises(TypeError, match=r"got Image: give bytes, a path or an array, or set isolated=False"):
        await imgsvc.aprocess(as_vips(photo("cat")), SMALL)
    assert (await imgsvc.aprocess(as_vips(photo("cat")), SMALL, isolated=False)).output.width == 30
    with pytest.raises(TypeError, match="Source must be"):
        await imgsvc.aprocess(3, SMALL)  # type: ignore[call-overload]


@ISOLATED
async def test_watermarks_may_come_from_a_function_of_the_caller(isolated: bool) -> None:
    mark = encoded.png_alpha().data
    request = {"watermark": {"id": "logo"}}
    result = await imgsvc.aprocess(photo("cat"), request, isolated=isolated, watermarks=lambda id: mark)
    assert result.data == imgsvc.process(photo("cat"), request, watermarks={"logo": mark}, threads=1).data


@ISOLATED
async def test_errors_are_those_of_process(isolated: bool) -> None:
    with pytest.raises(imgsvc.SpecError, match="resize"):
        await imgsvc.aprocess(encoded.jpeg().data, {"rezise": {"width": 3}}, isolated=isolated)
    with pytest.raises(imgsvc.UnsupportedFormat):
        await imgsvc.aprocess(b"no picture", isolated=isolated)
    with pytest.raises(imgsvc.OutputTooLarge):
        await imgsvc.aprocess(encoded.jpeg().data, isolated=isolated, limits=imgsvc.Limits(output_side=5))
    with pytest.raises(imgsvc.TargetError):
        await imgsvc.aprocess(encoded.jpeg().data, None, 3, isolated=isolated)  # type: ignore[call-overload]


@ISOLATED
async def test_a_result_that_cannot_be_encoded_is_told_as_such(isolated: bool) -> None:
    result = imgsvc.process(photo("cat"), imgsvc.Output(format="jpg", max_bytes=100))
    with pytest.raises(imgsvc.BudgetUnreachable):
        await imgsvc.aprocess(result, SMALL, isolated=isolated)
    with imgsvc.WorkerPool(1) as pool, pytest.raises(imgsvc.BudgetUnreachable):
        pool.submit(imgsvc.to_numpy, result)


@ISOLATED
async def test_time_limits_hold(isolated: bool) -> None:
    limits = attrs.evolve(imgsvc.Limits.none(), seconds=0.2)
    with pytest.raises(imgsvc.TimeLimitExceeded, match=r"0\.2 seconds"):
        await imgsvc.aprocess(photo("cat"), endless(), isolated=isolated, limits=limits)


async def test_an_encoder_that_cannot_be_stopped_ends_with_its_process() -> None:
    limits = attrs.evolve(imgsvc.Limits.none(), seconds=0.5)
    with pytest.raises(imgsvc.TimeLimitExceeded):
        await imgsvc.aprocess(noise(2000), {"output": {"format": "avif", "effort": 9}}, limits=limits)


Threads = dict[tuple[int, int], float]
"""Seconds of CPU by process and thread."""


@attrs.define
class Watch:
    """The threads that may do the work: those of the workers, or of this process.

    What computes when the watch begins is none of it, as encoders of earlier tests may go on for minutes.
    """

    isolated: bool
    before: Threads = attrs.field(factory=dict)
    others: frozenset[tuple[int, int]] = frozenset()

    @classmethod
    def begin(cls, *, isolated: bool) -> Watch:
        watch = cls(isolated)
        watch.others = frozenset(thread for thread, seconds in watch.spent().items() if seconds > 0.02)
        watch.before = watch.computed()
        return watch

    def computed(self) -> Threads:
        """The seconds of each thread, but for this one."""
        found = {}
        for pid in workers_of(os.getpid()) if self.isolated else [os.getpid()]:
            for task in Path(f"/proc/{pid}/task").glob("*"):
                with contextlib.suppress(OSError):  # it has ended
                    ticks = (task / "stat").read_text().rpartition(")")[2].split()[11:13]
                    if int(task.name) != threading.get_native_id():
                        found[pid, int(task.name)] = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        return found

    def spent(self) -> Threads:
        """The seconds of each thread during 0.2 seconds of this one: any other would get as much."""
        before, started = self.computed(), time.thread_time()
        while time.thread_time() < started + 0.2:
            pass
        return self._since(before)

    def _since(self, before: Threads) -> Threads:
        now = self.computed().items()
        return {key: total - before.get(key, 0.0) for key, total in now if key not in self.others}

    async def computing(self) -> int:
        """Return the process that does the work, once it computes."""
        while True:
            for (pid, _), seconds in self._since(self.before).items():
                if seconds >= 0.1:
                    return pid
            await asyncio.sleep(0.01)

    async def idle(self) -> bool:
        """True once the work has ended; False if it goes on for long."""
        end = time.monotonic() + 300
        while time.monotonic() < end:
            if max(self.spent().values(), default=0.0) < 0.1:
                return True
            await asyncio.sleep(0.1)
        return False


@ISOLATED
async def test_cancelling_ends_the_work(isolated: bool) -> None:
    watch = Watch.begin(isolated=isolated)
    task = asyncio.create_task(imgsvc.aprocess(photo("cat"), endless(), isolated=isolated, limits=NO_LIMITS))
    await watch.computing()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await watch.idle()
    assert (await imgsvc.aprocess(photo("cat"), SMALL, isolated=isolated)).output.width == 30


@ISOLATED
async def test_cancelling_leaves_no_part_of_a_target(isolated: bool, tmp_path: Path) -> None:
    target = tmp_path / "never.png"
    watch = Watch.begin(isolated=isolated)
    task = asyncio.create_task(
        imgsvc.aprocess(photo("cat"), endless(), target, isolated=isolated, limits=NO_LIMITS)
    )
    await watch.computing()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await watch.idle()
    assert list(tmp_path.iterdir()) == []


async def test_a_process_that_is_ended_leaves_no_part_of_a_target(tmp_path: Path) -> None:
    limits = attrs.evolve(imgsvc.Limits.none(), seconds=0.5)
    with pytest.raises(imgsvc.TimeLimitExceeded):
        await imgsvc.aprocess(noise(2000), {"output": {"effort": 9}}, tmp_path / "never.avif", limits=limits)
    assert list(tmp_path.iterdir()) == []


@ISOLATED
async def test_cancelling_twice_is_as_cancelling_once(isolated: bool) -> None:
    watch = Watch.begin(isolated=isolated)
    task = asyncio.create_task(imgsvc.aprocess(photo("cat"), endless(), isolated=isolated, limits=NO_LIMITS))
    await watch.computing()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert await watch.idle()


class GatedFile(io.BytesIO):
    """A file that is read when its gate is open."""

    def __init__(self) -> None:
        super().__init__(encoded.png().data)
        self.asked, self.gate = threading.Event(), threading.Event()

    def read(self, size: int | None = -1) -> bytes:
        self.asked.set()
        self.gate.wait()
        return super().read(size)


@ISOLATED
async def test_cancelling_twice_waits_for_the_end_of_the_work(
    isolated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asynchronous, "_END_SECONDS", 600)
    file = GatedFile()
    task = asyncio.create_task(imgsvc.aprocess(file, SMALL, isolated=isolated))
    await asyncio.to_thread(file.asked.wait)
    for _ in range(3):
        task.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
    assert not task.done()
    file.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task


@ISOLATED
async def test_a_timeout_of_asyncio_ends_the_work(isolated: bool) -> None:
    watch = Watch.begin(isolated=isolated)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await imgsvc.aprocess(photo("cat"), endless(), isolated=isolated, limits=NO_LIMITS)
    assert await watch.idle()


async def test_work_that_waits_for_a_process_is_not_begun_after_it_is_cancelled(tmp_path: Path) -> None:
    with imgsvc.WorkerPool(1) as pool:
        first = asyncio.create_task(imgsvc.aprocess(photo("cat"), endless(), pool=pool, limits=NO_LIMITS))
        await asyncio.sleep(0.3)
        target = tmp_path / "never.png"
        second = asyncio.create_task(imgsvc.aprocess(photo("cat"), SMALL, target, pool=pool))
        await asyncio.sleep(0.2)
        second.cancel()
        first.cancel()
        assert [type(error) for error in await asyncio.gather(first, second, return_exceptions=True)] == [
            asyncio.CancelledError
        ] * 2
        assert (await imgsvc.aprocess(photo("cat"), SMALL, pool=pool)).output.width == 30
        assert not target.exists()


@ISOLATED
async def test_many_calls_wait_for_their_turn_which_takes_none_of_their_time(isolated: bool) -> None:
    """As many work at once as there are cores. The time limit of the others has not begun."""
    cores = len(os.sched_getaffinity(0))
    first = [
        asyncio.create_task(imgsvc.aprocess(photo("cat"), endless(), isolated=isolated, limits=NO_LIMITS))
        for _ in range(cores)
    ]
    await asyncio.sleep(0.3)
    limits = imgsvc.Limits(seconds=2)
    waiting = [
        asyncio.create_task(imgsvc.aprocess(photo("cat"), SMALL, isolated=isolated, limits=limits))
        for _ in range(3 * cores)
    ]
    await asyncio.sleep(2.2)
    assert not any(task.done() for task in (*first, *waiting))
    for task in first:
        task.cancel()
    assert [result.output.width for result in await asyncio.gather(*waiting)] == [30] * len(waiting)


async def test_a_crash_costs_one_call() -> None:
    watch = Watch.begin(isolated=True)
    running = asyncio.create_task(imgsvc.aprocess(photo("cat"), endless(), limits=NO_LIMITS))
    os.kill(await watch.computing(), signal.SIGSEGV)
    with pytest.raises(imgsvc.WorkerDied):
        await running
    assert (await imgsvc.aprocess(photo("cat"), SMALL)).output.width == 30


@ISOLATED
async def test_the_loop_computes_nothing_itself(isolated: bool) -> None:
    """The thread of the loop takes less than 20 ms of CPU for a picture that takes far more of it."""
    picture = noise(1500)
    task = asyncio.create_task(imgsvc.aprocess(picture, {"output": {"format": "png"}}, isolated=isolated))
    longest = 0.0
    while not task.done():
        before = time.thread_time()
        await asyncio.sleep(0.001)
        longest = max(longest, time.thread_time() - before)
    assert (await task).output.width == 1500
    assert longest < 0.02
