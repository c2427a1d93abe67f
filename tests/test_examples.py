"""The examples do what they say, run as a reader would run them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from examples.sheets import Cell, save, sheet
from PIL import Image

import imgsvc_core as imgsvc
from tests.support import photos, requires
from tests.support.commands import run_command
from tests.support.servers import free_port

TOP = Path(__file__).parent.parent
PICTURES = TOP / "examples" / "pictures"
FASTAPI = ("http://127.0.0.1:{port}", "-m", "uvicorn", "examples.core_from_fastapi:app", "--port", "{port}")


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=TOP, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("picture", ["portrait.jpg", "coffee.heic", "day.gif", "logo.svg"])
def test_thumbnail(picture: str, tmp_path: Path) -> None:
    target = tmp_path / "thumbnail.webp"
    done = run("examples/thumbnail.py", PICTURES / picture, target)
    assert done.returncode == 0, done.stderr
    info = imgsvc.inspect(target)
    assert (info.format, info.width, info.height) == ("webp", 256, 256)
    assert info.animated == imgsvc.inspect(PICTURES / picture).animated


def test_brand_photos_goes_on_after_a_broken_file(tmp_path: Path) -> None:
    photos, branded = tmp_path / "photos", tmp_path / "branded"
    photos.mkdir()
    for name in ("coffee.heic", "portrait.jpg"):
        shutil.copy(PICTURES / name, photos)
    (photos / "broken.jpg").write_bytes((PICTURES / "portrait.jpg").read_bytes()[:500])
    done = run("examples/brand_photos.py", photos, branded, PICTURES / "logo.svg")
    assert done.returncode == 1
    assert done.stderr.startswith("broken.jpg: ")
    assert sorted(path.name for path in branded.iterdir()) == ["coffee.heic.webp", "portrait.jpg.webp"]
    assert imgsvc.inspect(branded / "portrait.jpg.webp").upright_size == (400, 512)


@pytest.mark.parametrize("example", ["batch_folder.py", "batch_cluster.py"])
def test_batches_make_three_sizes_of_each_picture_once(example: str, tmp_path: Path) -> None:
    for expected in ("5 done, 0 failed, 0 unchanged", "0 done, 0 failed, 5 unchanged"):
        done = run(f"examples/{example}", PICTURES, tmp_path / "site")
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == expected
    widths = {path.name: imgsvc.inspect(path).width for path in (tmp_path / "site").glob("*.webp")}
    assert (widths["coffee-thumb.webp"], widths["coffee-card.webp"]) == (160, 480)
    assert len(widths) == 15


def test_demo_shows_every_result(tmp_path: Path) -> None:
    done = run("-m", "examples.demo", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    formats = {imgsvc.inspect(path).format for path in tmp_path.iterdir() if path.suffix != ".html"}
    assert {"jpg", "png", "apng", "webp", "avif", "jp2"} <= formats
    for target in ("face.webp", "only-the-red.avif", "evening.apng"):
        assert imgsvc.inspect(tmp_path / target).format == Path(target).suffix[1:]
        assert f'<img src="{target}"' in page
    made = tmp_path / "sheet.jpg"
    assert imgsvc.inspect(made).bytes < 300_000
    for name, sheet_made in (("demo.jpg", made), ("cover.jpg", tmp_path / "cover.jpg")):
        shown = TOP / "docs" / "images" / name
        assert not differs_anywhere(shown, sheet_made), f"docs/images/{name} is stale: run nox -s pictures"


def test_one_wrong_word_makes_a_sheet_stale(tmp_path: Path) -> None:
    cells = [
        Cell((PICTURES / "emblem.png").read_bytes(), f"{name} to turned.jp2") for name in ("emblem", "logo")
    ]
    for cell, name in zip(cells, ("right.jpg", "wrong.jpg"), strict=True):
        save(sheet([[cell] * 4], width=340, height=300, font=20), tmp_path / name)
    assert not differs_anywhere(tmp_path / "right.jpg", tmp_path / "right.jpg")
    assert differs_anywhere(tmp_path / "right.jpg", tmp_path / "wrong.jpg")


def differs_anywhere(one: Path, other: Path) -> bool:
    """Return True if a tile of 16 x 16 pixels differs by more than rounding and compression do."""
    first, second = (np.asarray(Image.open(path), dtype=float) for path in (one, other))
    height, width = (side // 16 * 16 for side in first.shape[:2])
    differences = np.abs(first - second)[:height, :width].mean(axis=2)
    tiles = differences.reshape(height // 16, 16, width // 16, 16).mean(axis=(1, 3))
    return bool(tiles.max() > 8)


def test_the_service_in_an_aiohttp_application(tmp_path: Path) -> None:
    state = tmp_path / "state"
    environment = {"IMGSVC_SERVER_STATE_FOLDER": str(state)}
    imgsvc_command(environment, "db", "upgrade")
    account = imgsvc_command(environment, "accounts", "create", "Acme")["id"]
    key = imgsvc_command(environment, "keys", "create", account)["secret"]
    with serving("https://localhost:{port}", "examples/embed_in_aiohttp.py", "{port}", state) as url:
        tls = ssl.create_default_context(cafile=state / "localhost.pem")
        assert get(url, tls)[:2] == (200, b"An application with pictures.\n")
        assert get(f"{url}/images/healthz", tls)[0] == 200
        assert get(f"{url}/images/1.0/account", tls)[0] == 401
        curl: list[str | Path] = [
            requires.program("curl"),
            "-s",
            "--cacert",
            state / "localhost.pem",
            "-H",
            f"Authorization: Bearer {key}",
        ]
        form = ["-F", f"file=@{PICTURES / 'coffee.heic'}", "-F", 'data={"resize": {"width": 120}}']
        done = subprocess.run(
            [*curl, *form, f"{url}/images/1.0/upload"], capture_output=True, check=True, text=True
        )
        output = json.loads(done.stdout)["output"]
        status, picture, _ = get(output["url"], tls)
        assert (status, imgsvc.inspect(picture).width) == (200, 120)


def test_the_library_in_a_fastapi_application() -> None:
    with serving(*FASTAPI) as url:
        coffee = (PICTURES / "coffee.heic").read_bytes()
        status, picture, media_type = get(f"{url}/previews?width=300", data=coffee)
        info = imgsvc.inspect(picture)
        assert (status, media_type) == (200, "image/webp")
        assert (info.format, info.width) == ("webp", 300)
        status, body, _ = get(f"{url}/previews", data=b"no picture")
        assert (status, json.loads(body)["error"]) == (422, "unsupported_format")
        status, body, _ = get(f"{url}/previews", data=bytes(20_000_001))
        assert (status, json.loads(body)["error"]) == (413, "source_too_large")
        assert get(f"{url}/previews?width=0", data=b"")[0] == 422


def test_the_event_loop_of_fastapi_stays_free() -> None:
    large: bytes = photos.as_vips(photos.mosaic(6000, 5000)).jpegsave_buffer()
    with serving(*FASTAPI) as url, ThreadPoolExecutor() as clients:

        def longest_part() -> float:
            """The part of the time of a picture in which nothing else was answered."""
            waits: list[float] = []
            working = clients.submit(get, f"{url}/previews?width=2000", data=large)
            while not working.done():
                started = time.monotonic()
                assert get(f"{url}/openapi.json")[0] == 200
                waits.append(time.monotonic() - started)
            assert working.result()[0] == 200
            return max(waits) / sum(waits)

        # A loop that works on a picture stands still each time, and a busy machine now and then.
        assert any(longest_part() < 1 / 2 for _ in range(6))


def imgsvc_command(environment: dict[str, str], *arguments: str) -> dict[str, str]:
    told = run_command(*arguments, "--json", environment=os.environ | environment)
    answer: dict[str, str] = json.loads(told)
    return answer


@contextlib.contextmanager
def serving(url: str, *arguments: str | Path) -> Iterator[str]:
    """The URL of an example that serves at a ``{port}``, from its first answer until it is told to end."""
    with contextlib.ExitStack() as stack:
        port = str(stack.enter_context(free_port()))
        url, *given = (str(part).replace("{port}", port) for part in (url, *arguments))
        command = [sys.executable, *given]
        process = stack.enter_context(
            subprocess.Popen(command, cwd=TOP, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        )
        try:
            deadline = time.monotonic() + 60
            while not answers(url):
                assert process.poll() is None, process.stderr and process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.1)
            yield url
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) in (0, -signal.SIGTERM)
        finally:
            process.kill()


def answers(url: str) -> bool:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        get(url, trusting)
    except OSError:
        return False
    return True


def get(url: str, tls: ssl.SSLContext | None = None, *, data: bytes | None = None) -> tuple[int, bytes, str]:
    """Status, body and media type of an answer; with data, of one to a POST."""
    request = urllib.request.Request(url, data, {"Content-Type": "application/octet-stream"})
    try:
        with urllib.request.urlopen(request, timeout=60, context=tls) as answer:
            return answer.status, answer.read(), answer.headers.get_content_type()
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers.get_content_type()
