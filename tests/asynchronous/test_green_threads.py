"""Where gevent or eventlet has replaced Python's threads, time limits hold and green threads go on."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PATCHES = {
    "none": "",
    "gevent": "from gevent import monkey; monkey.patch_all()",
    "eventlet": "import warnings; warnings.simplefilter('ignore'); import eventlet; eventlet.monkey_patch()",
}
LATE = "import imgsvc_core.processing"

PROGRAM = """
import json, threading, time
import numpy as np
import imgsvc_core as imgsvc
from imgsvc_core._runtime.real_threads import are_replaced

ticks = []

def tick():
    while True:
        ticks.append(time.monotonic())
        time.sleep(0.01)

threading.Thread(target=tick, daemon=True).start()
pixels = np.random.default_rng(1).integers(0, 256, (2500, 3000, 3), np.uint8)
slow = {"output": {"format": "avif", "effort": 9}}  # an encoder that cannot be stopped
time.sleep(0.05)
before, started, cpu = len(ticks), time.monotonic(), time.process_time()
try:
    imgsvc.process(pixels, slow, limits=imgsvc.Limits(seconds=0.2)).data
    error = None
except imgsvc.TimeLimitExceeded as found:
    error = found.slug
small = imgsvc.process(pixels[:90, :90].copy(), {"resize": {"width": 30}}).data
print(json.dumps({
    "replaced": are_replaced(),
    "error": error,
    "ticks": len(ticks) - before,
    "width": imgsvc.inspect(small).width,
}), flush=True)
import os; os._exit(0)  # the encoder goes on
"""


@pytest.mark.parametrize("late", [False, True], ids=["patched first", "patched after the import"])
@pytest.mark.parametrize("kind", PATCHES)
def test_a_time_limit_holds_and_others_go_on(kind: str, late: bool) -> None:
    patches = [LATE, PATCHES[kind]] if late else [PATCHES[kind]]
    program = "\n".join([*patches, PROGRAM])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    told = json.loads(done.stdout)
    assert told["replaced"] is (kind != "none")
    assert (told["error"], told["width"]) == ("time_limit_exceeded", 30)
    assert told["ticks"] >= 2, "green threads stood still"


POOL = """
import imgsvc_core as imgsvc
try:
    imgsvc.WorkerPool(1)
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", ["gevent", "eventlet"])
def test_a_pool_tells_that_it_needs_threads_of_the_system(kind: str) -> None:
    command = [sys.executable, "-c", f"{PATCHES[kind]}\n{POOL}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "gevent or eventlet has replaced those of Python: call `process` in this process" in done.stdout
