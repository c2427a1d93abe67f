"""Processes that were forked after their parent had used libvips, whose threads stay behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import multiprocessing, sys
import imgsvc_core as imgsvc
import pyvips

SOURCE = "examples/pictures/portrait.jpg"

def small(how):
    if hasattr(imgsvc.Result, str(how)):
        return getattr(made, how)() is not None
    source = interlaced if how == "interlaced" else SOURCE
    return imgsvc.process(source, {"resize": {"width": 20}}).output.width

if __name__ == "__main__":
    imgsvc.inspect(SOURCE)
    if "used" in sys.argv:
        made = imgsvc.process(SOURCE, {"output": {"format": "jpg"}})
    if "interlaced" in sys.argv:
        interlaced = pyvips.Image.thumbnail(SOURCE, 64).pngsave_buffer(interlace=True, keep="none")
    if "alone" in sys.argv:
        pyvips.Image.black(500, 500).avg()
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        try:
            print(pool.map_async(small, sys.argv[3:] or [1, 2]).get(timeout=60))
        except imgsvc.ForkedProcess as error:
            print(error.slug, error)
"""


def told(folder: Path, *arguments: str) -> str:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(program), *arguments]
    return subprocess.check_output(command, text=True, timeout=120, env=environment)


@pytest.mark.parametrize(
    "how", [["used"], ["alone"], ["used", "to_vips"], ["used", "to_dict"], ["used", "interlaced"]]
)
def test_a_forked_process_says_what_to_do_instead_of_waiting_forever(how: list[str], tmp_path: Path) -> None:
    answer = told(tmp_path, "fork", *how)
    assert answer.startswith("forked_process This process was forked after its parent had processed images")
    assert "'spawn'" in answer


@pytest.mark.parametrize("how", [("fork",), ("spawn", "used"), ("forkserver", "used")])
def test_other_processes_work(how: tuple[str, ...], tmp_path: Path) -> None:
    assert told(tmp_path, *how) == "[20, 20]\n"


@pytest.mark.parametrize("how", ["to_numpy", "to_pil"])
def test_pixels_that_are_computed_need_no_libvips(how: str, tmp_path: Path) -> None:
    assert told(tmp_path, "fork", "used", how) == "[True]\n"
