"""`aprocess` on loops that come and go, that are closed over their work, and in forked processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import imgsvc_core as imgsvc
from tests.asynchronous.test_aprocess import NO_LIMITS, SMALL, endless
from tests.support import encoded
from tests.support.photos import photo


def test_loops_come_and_go() -> None:
    """Each run has a loop of its own; the processes stay."""
    before = {asyncio.run(imgsvc.aprocess(photo("cat"), SMALL)).output.width for _ in range(3)}
    assert before == {30}

    async def leave() -> None:
        asyncio.create_task(imgsvc.aprocess(photo("cat"), endless(), limits=NO_LIMITS))  # noqa: RUF006
        await asyncio.sleep(0.3)

    asyncio.run(leave())  # cancels what is left
    loop = asyncio.new_event_loop()
    task = loop.create_task(imgsvc.aprocess(photo("cat"), SMALL, isolated=False))
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.run_until_complete(asyncio.wait([task]))
    loop.close()
    assert asyncio.run(imgsvc.aprocess(photo("cat"), SMALL)).output.width == 30


CLOSED = """
import asyncio, sys
import imgsvc_core as imgsvc

async def begin():
    asyncio.create_task(imgsvc.aprocess(SOURCE, {"resize": {"width": 3000}}, isolated=ISOLATED))
    await asyncio.sleep(0.05)

SOURCE, ISOLATED = sys.argv[1], sys.argv[2] == "True"
loop = asyncio.new_event_loop()
loop.run_until_complete(begin())
loop.close()
print(asyncio.run(imgsvc.aprocess(SOURCE, {"resize": {"width": 30}}, isolated=ISOLATED)).output.width)
"""


@pytest.mark.parametrize("isolated", [True, False], ids=["isolated", "thread"])
def test_a_loop_that_is_closed_over_its_work_leaves_the_next_one_alone(
    isolated: bool, tmp_path: Path
) -> None:
    source = tmp_path / "photo.png"
    source.write_bytes(encoded.png().data)
    command = [sys.executable, "-c", CLOSED, str(source), str(isolated)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "30\n"), done.stderr
    assert "Traceback" not in done.stderr.replace("Task was destroyed but it is pending", "")


UNUSED = """
import asyncio, os, sys
import imgsvc_core as imgsvc
asyncio.run(imgsvc.aprocess(sys.argv[1], {"resize": {"width": 30}}))
child = os.fork()
if child == 0:
    print(asyncio.run(imgsvc.aprocess(sys.argv[1], {"resize": {"width": 30}})).output.width, flush=True)
    sys.exit(0)
os.waitpid(child, 0)
"""


def test_a_child_has_processes_of_its_own_and_all_end(tmp_path: Path) -> None:
    source = tmp_path / "photo.png"
    source.write_bytes(encoded.png().data)
    done = subprocess.run(
        [sys.executable, "-c", UNUSED, str(source)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "30\n"), done.stderr
