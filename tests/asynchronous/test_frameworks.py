"""The library in FastAPI, Django, Celery and Jupyter, as the examples and the documentation show it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from PIL import Image

import imgsvc_core as imgsvc
from tests.support.servers import redis
from tests.test_examples import PICTURES, TOP, get, serving

DJANGO = ("http://127.0.0.1:{port}", "-m", "uvicorn", "examples.core_from_django:app", "--port", "{port}")


def test_an_asynchronous_view_of_django() -> None:
    with serving(*DJANGO) as url:
        coffee = (PICTURES / "coffee.heic").read_bytes()
        status, picture, media_type = get(f"{url}/avatars", data=coffee)
        info = imgsvc.inspect(picture)
        assert (status, media_type, info.format, info.width, info.height) == (
            200,
            "image/webp",
            "webp",
            200,
            200,
        )
        status, body, _ = get(f"{url}/avatars", data=b"no picture")
        assert (status, json.loads(body)["error"]) == (422, "unsupported_format")


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with redis() as url:
        yield url


@contextmanager
def celery_worker(broker: str, *options: str) -> Iterator[None]:
    command = [sys.executable, "-m", "celery", "-A", "examples.celery_tasks", "worker", "-c", "2", *options]
    environment = {**os.environ, "REDIS_URL": broker, "PYTHONPATH": os.pathsep.join([str(TOP), *sys.path])}
    worker = subprocess.Popen(
        [*command, "-l", "error"], cwd=TOP, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        yield
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=60)
    finally:
        worker.kill()


ASK = """
import json, sys
from examples.celery_tasks import thumbnail
for source, target, seconds in json.loads(sys.argv[1]):
    print(thumbnail.delay(source, target, seconds).get(timeout=90))
"""


def ask(broker: str, *tasks: tuple[Path, Path, float]) -> list[str]:
    """Return what tasks say, one after the other: pictures, where their results go, and most seconds."""
    asked = json.dumps([(str(source), str(target), seconds) for source, target, seconds in tasks])
    environment = {**os.environ, "REDIS_URL": broker, "PYTHONPATH": os.pathsep.join([str(TOP), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", ASK, asked],
        cwd=TOP, env=environment, capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slow") / "slow.png"
    noise = np.random.default_rng(1).integers(0, 256, (3500, 3500, 3), np.uint8)
    Image.fromarray(noise).save(path, compress_level=1)
    return path


@pytest.mark.parametrize("pool", ["prefork", "gevent"])
def test_tasks_of_celery(pool: str, broker: str, slow: Path, tmp_path: Path) -> None:
    target, never = tmp_path / "small.webp", tmp_path / "never.webp"
    good = PICTURES / "portrait.jpg", target, 30
    with celery_worker(broker, "--pool", pool):
        tasks = [*[good] * 3, (slow, never, 0.05), (PICTURES / "README.md", never, 30), good]
        told = ask(broker, *tasks)
    assert told == [*["256x328"] * 3, "time_limit_exceeded", "unsupported_format", "256x328"]
    assert imgsvc.inspect(target).width == 256
    assert not never.exists()


def cells_of(page: str) -> list[str]:
    """The cells of the notebook that a page shows."""
    text = (TOP / "docs" / page).read_text(encoding="utf-8")
    section = text.partition("## Jupyter")[2].partition("\n## ")[0]
    return re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)


def test_a_notebook_awaits_results_and_shows_them(tmp_path: Path) -> None:
    for picture in PICTURES.iterdir():
        (tmp_path / picture.name).write_bytes(picture.read_bytes())
    notebook: Any = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells_of("async.md")]
    assert len(notebook.cells) == 2
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    [shown] = [output for output in notebook.cells[0].outputs if output.output_type == "execute_result"]
    assert "image/jpeg" in shown.data
    [names] = [output for output in notebook.cells[1].outputs if output.output_type == "execute_result"]
    assert "coffee.heic" in names.data["text/plain"]
