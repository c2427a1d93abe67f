"""thumbor itself and our requests for the same URLs give pictures that look the same.

thumbor is installed once, in an environment of its own.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks.installed import thumbor
from PIL import ExifTags, Image

import imgsvc_core as imgsvc
from imgsvc_urls.dialects import Document, ForeignRequest
from imgsvc_urls.dialects.thumbor import Thumbor
from imgsvc_urls.dialects.translating import translate
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
    as_vips(coffee()).jpegsave(str(folder / "fine.jpg"), Q=92, subsample_mode="off")
    drawn = np.zeros((300, 400, 4), np.uint8)
    drawn[50:250, 80:300] = 200, 40, 40, 255
    drawn[100:200, 120:200, 3] = 128
    as_vips(drawn).pngsave(str(folder / "drawn.png"))
    as_vips(drawn[60:240:6, 90:290:4]).pngsave(str(folder / "mark.png"))
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    Image.fromarray(coffee()).save(folder / "turned.jpg", quality=90, exif=exif)
    Image.fromarray(coffee()).convert("CMYK").save(folder / "cmyk.jpg", quality=90)
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


WATERMARKS = {name: name for name in ("mark.png", "drawn.png")}
EFFECTS = 0.1
SAME = 0.02


def ours(folder: Path, path: str) -> bytes | Document:
    """What this project answers to a URL."""
    source = (folder / path.rpartition("/")[2]).read_bytes()
    dialect = Thumbor(unsafe=True, watermarks=WATERMARKS)  # type: ignore[arg-type]
    found = translate(dialect.parse(ForeignRequest(path)), source)
    if isinstance(found, Document):
        return found
    assert found is not None
    data = imgsvc.process(source, found, watermarks=lambda id: (folder / id).read_bytes()).data
    assert data is not None
    return data


def theirs(server: str, path: str) -> bytes:
    with urllib.request.urlopen(f"{server}{path}", timeout=SECONDS) as response:
        found: bytes = response.read()
    return found


@pytest.mark.parametrize(
    ("parts", "most"),
    [
        *(
            (parts, SAME)
            for parts in (
                "300x0/photo.jpg",
                "300x200/photo.jpg",
                "-251x167/photo.jpg",
                "90x90/photo.jpg",
                "900x0/photo.jpg",
                "300x300/top/photo.jpg",
                "200x300/right/photo.jpg",
                "610x407/photo.jpg",
                "fit-in/300x300/photo.jpg",
                "full-fit-in/300x300/photo.jpg",
                "adaptive-fit-in/200x300/photo.jpg",
                "50x20:450x300/200x0/photo.jpg",
                "-300x-150/left/photo.jpg",
                "origx100/photo.jpg",
                "900x100/filters:no_upscale()/photo.jpg",
                "100x300/right/filters:rotate(90)/photo.jpg",
                "200x200/filters:stretch()/photo.jpg",
                "fit-in/700x700/filters:fill(336699)/photo.jpg",
                "fit-in/700x700/filters:fill(auto)/photo.jpg",
                "300x200/filters:rotate(90):fill(red):rotate(90)/photo.jpg",
                "fit-in/900x900/filters:upscale()/photo.jpg",
                "100x300/filters:focal(400x0:500x100)/photo.jpg",
                "200x150/drawn.png",
                "200x150/filters:format(jpeg)/drawn.png",
                "200x150/filters:background_color(00ff00)/drawn.png",
                "fit-in/300x300/filters:fill(00ff00,1)/drawn.png",
                "fit-in/300x300/filters:fill(00ff00)/drawn.png",
                "trim/100x0/drawn.png",
                "trim:bottom-right:5/20x60:200x280/-90x70/drawn.png",
                "300x200/filters:nosuch(1):quality(abc)/photo.jpg",
                "300x200/turned.jpg",
                "300x200/cmyk.jpg",
                "filters:max_bytes(25755)/fine.jpg",
                "300x200/filters:format(gif)/photo.jpg",
                "200x150/filters:format(gif)/drawn.png",
                "filters:watermark(mark.png,10,-20,40)/photo.jpg",
                "filters:watermark(mark.png,repeat,repeat,0)/photo.jpg",
                "filters:watermark(mark.png,repeat,-30p,20,none,5)/photo.jpg",
                "filters:watermark(mark.png,center,4p,0,150):watermark(drawn.png,-5,-5,70,30)/photo.jpg",
            )
        ),
        *(
            (parts, EFFECTS)
            for parts in (
                "300x200/filters:proportion(0.5):grayscale()/photo.jpg",
                "300x200/filters:brightness(20):contrast(-20)/photo.jpg",
                "300x200/filters:saturation(0.5)/photo.jpg",
                "300x200/filters:saturation(9)/photo.jpg",
                "300x200/filters:blur(10,3)/photo.jpg",
                "filters:blur(25)/photo.jpg",
                "filters:blur(6)/drawn.png",
                "filters:blur(60)/drawn.png",
                "fit-in/500x500/filters:fill(blur)/drawn.png",
                "300x200/filters:round_corner(20,255,0,0)/photo.jpg",
                "300x200/filters:round_corner(20|50,255,0,0,1)/photo.jpg",
                "41x175/filters:round_corner(79,191,242,89)/drawn.png",
                "300x200/filters:round_corner(20,255,0,0,true):format(png)/photo.jpg",
                "300x200/filters:format(webp):quality(50)/photo.jpg",
                "filters:colorize(40,80,20,ff8000)/photo.jpg",
                "filters:rgb(30,-20,5)/photo.jpg",
                "filters:equalize()/photo.jpg",
                "filters:sharpen(4,1.5,true)/photo.jpg",
                "filters:sharpen(2,0.5,false)/photo.jpg",
                "filters:convolution(-1;-1;-1;-1;8;-1;-1;-1;-1,3,false)/photo.jpg",
                "filters:convolution(1;2;1;2;4;2;1;2;9,3,true)/drawn.png",
                "filters:curve([(0,0),(255,255)],[(0,50),(58,85),(255,200)],[(0,0),(255,255)],[(9,9)])/photo.jpg",
                "fit-in/700x700/filters:fill(blur)/photo.jpg",
                "filters:rotate(90):blur(3):watermark(mark.png,0,0,0):rgb(20,0,0)/photo.jpg",
            )
        ),
    ],
)
def test_pictures_look_the_same(server: str, folder: Path, parts: str, most: float) -> None:
    first, second = theirs(server, f"/unsafe/{parts}"), ours(folder, f"/unsafe/{parts}")
    assert isinstance(second, bytes)
    told, made = imgsvc.inspect(first), imgsvc.inspect(second)
    assert (told.format, told.width, told.height) == (made.format, made.width, made.height)
    assert imgsvc.compare(first, second).dssim < most


@pytest.mark.parametrize(
    "parts",
    [
        "300x200",
        "fit-in/200x200",
        "full-fit-in/200x300",
        "10x20:300x350/-100x100/left",
        "500x300:100x350/100x",
        "0x0:700x900/100x/filters:focal(500x10:700x900)",
        "100x300/filters:focal(900x10:950x60):rotate(90):proportion(.5)",
    ],
)
@pytest.mark.parametrize("image", ["photo.jpg", "drawn.png"])
def test_meta_tells_the_same(server: str, folder: Path, parts: str, image: str) -> None:
    for trim in ("", "trim:10/") if image == "drawn.png" else ("",):
        path = f"/unsafe/meta/{trim}{parts}/{image}"
        found = ours(folder, path)
        assert isinstance(found, Document)
        assert json.loads(found.body) == json.loads(theirs(server, path))
