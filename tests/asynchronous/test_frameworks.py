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
import sys
from examples.celery_tasks import thumbnail
print(thumbnail.delay(*sys.argv[1:3], float(sys.argv[3])).get(timeout=90))
"""


def ask(broker: str, source: Path, target: Path, seconds: float = 30) -> str:
    command = [sys.executable, "-c", ASK, str(source), str(target), str(seconds)]
    environment = {**os.environ, "REDIS_URL": broker, "PYTHONPATH": os.pathsep.join([str(TOP), *sys.path])}
    done = subprocess.run(
        command, cwd=TOP, env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize("pool", ["prefork", "gevent"])
def test_tasks_of_celery(pool: str, broker: str, tmp_path: Path) -> None:
    slow = tmp_path / "slow.png"
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (3500, 3500, 3), np.uint8)).save(
        slow, compress_level=1
    )
    target = tmp_path / "small.webp"
    with celery_worker(broker, "--pool", pool):
        for _ in range(3):
            assert ask(broker, PICTURES / "portrait.jpg", target) == "256x328"
        assert imgsvc.inspect(target).width == 256
        assert ask(broker, slow, tmp_path / "never.webp", 0.05) == "time_limit_exceeded"
        assert not (tmp_path / "never.webp").exists()
        assert ask(broker, PICTURES / "README.md", target) == "unsupported_format"
        assert ask(broker, PICTURES / "portrait.jpg", target) == "256x328"


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
