"""thumbor itself and our requests for the same URLs give pictures that look the same.

thumbor is installed once, in an environment of its own.
"""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks.installed import thumbor

import imgsvc_core as imgsvc
from imgsvc_cli.comparing import dssim
from imgsvc_core.dialects import ForeignRequest
from imgsvc_core.dialects.thumbor import Thumbor
from tests.support import requires
from tests.support.photos import as_vips, coffee
from tests.support.servers import free_port

pytestmark = pytest.mark.slow

CONFIG = """
LOADER = "thumbor.loaders.file_loader"
FILE_LOADER_ROOT_PATH = "{folder}"
STORAGE = "thumbor.storages.no_storage"
"""
SECONDS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("thumbor")
    as_vips(coffee()).jpegsave(str(folder / "photo.jpg"), Q=90)
    drawn = np.zeros((300, 400, 4), np.uint8)
    drawn[50:250, 80:300] = 200, 40, 40, 255
    drawn[100:200, 120:200, 3] = 128
    as_vips(drawn).pngsave(str(folder / "drawn.png"))
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    try:
        command = thumbor()
    except (OSError, subprocess.CalledProcessError) as error:
        requires.missing(f"thumbor cannot be installed ({error})")
    (folder / "thumbor.conf").write_text(CONFIG.format(folder=folder))
    with free_port() as port:
        process = subprocess.Popen(
            [command, "-i", "127.0.0.1", "-p", str(port), "-c", folder / "thumbor.conf"]
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(f"{url}/healthcheck")
            yield url
        finally:
            process.kill()
            process.wait()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            urllib.request.urlopen(url).close()
            return
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@pytest.mark.parametrize(
    ("parts", "most"),
    [
        ("300x0/photo.jpg", 0.05),
        ("300x300/top/photo.jpg", 0.03),
        ("200x300/right/photo.jpg", 0.03),
        ("610x407/photo.jpg", 0.04),
        ("fit-in/300x300/photo.jpg", 0.05),
        ("full-fit-in/300x300/photo.jpg", 0.03),
        ("adaptive-fit-in/200x300/photo.jpg", 0.05),
        ("50x20:450x300/200x0/photo.jpg", 0.05),
        ("-200x-100/left/photo.jpg", 0.06),
        ("origx100/photo.jpg", 0.02),
        ("900x100/filters:no_upscale()/photo.jpg", 0.02),
        ("100x300/right/filters:rotate(90)/photo.jpg", 0.03),
        ("300x200/filters:proportion(0.5):grayscale()/photo.jpg", 0.08),
        ("200x200/filters:stretch()/photo.jpg", 0.04),
        ("fit-in/700x700/filters:fill(336699)/photo.jpg", 0.02),
        ("fit-in/900x900/filters:upscale()/photo.jpg", 0.03),
        ("300x200/filters:brightness(20):contrast(-20)/photo.jpg", 0.07),
        ("300x200/filters:saturation(0.5)/photo.jpg", 0.07),
        ("300x200/filters:blur(10,3)/photo.jpg", 0.03),
        ("300x200/filters:round_corner(20,255,0,0)/photo.jpg", 0.05),
        ("300x200/filters:format(webp):quality(50)/photo.jpg", 0.08),
        ("100x300/filters:focal(400x0:500x100)/photo.jpg", 0.03),
        ("200x150/drawn.png", 0.02),
        ("200x150/filters:background_color(00ff00)/drawn.png", 0.02),
        ("fit-in/300x300/filters:fill(00ff00,1)/drawn.png", 0.02),
        ("fit-in/300x300/filters:fill(00ff00)/drawn.png", 0.02),
        ("trim/100x0/drawn.png", 0.02),
        ("300x200/filters:nosuch(1):quality(abc)/photo.jpg", 0.05),
    ],
)
def test_pictures_look_the_same(server: str, folder: Path, parts: str, most: float) -> None:
    """Half the size of a JPEG differs most: thumbor takes what its decoder makes, and no pixel more."""
    with urllib.request.urlopen(f"{server}/unsafe/{parts}", timeout=SECONDS) as response:
        theirs = response.read()
    source = (folder / parts.rpartition("/")[2]).read_bytes()
    url = Thumbor(unsafe=True).parse(ForeignRequest(f"/unsafe/{parts}"))
    ours = imgsvc.process(source, url.spec(imgsvc.inspect(source))).data
    first, second = imgsvc.inspect(theirs), imgsvc.inspect(ours)
    assert (first.format, first.width, first.height) == (second.format, second.width, second.height)
    assert dssim(theirs, ours) < most
