"""Without the packages of any extra, the command says which extra to install."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.photos import as_vips, coffee

# The packages of all extras are as if they were not installed.
PLAIN = """
import sys
from importlib.machinery import PathFinder

MISSING = {
    "adlfs", "aiobotocore", "aiohttp", "aiosqlite", "alembic", "alibabacloud_oss_v2", "asyncpg", "azure",
    "botocore", "cachetools", "cryptography", "cv2", "dask", "dbos", "deflate", "distributed", "gcsfs",
    "google", "imagecodecs", "multidict", "multipart", "ossfs", "pillow_heif", "pyjpegli", "redis", "s3fs",
    "simplejpeg", "skimage", "sqlalchemy", "uvloop", "yarl",
}

class Plain(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in MISSING else super().find_spec(name, path, target)

sys.meta_path = [Plain if finder is PathFinder else finder for finder in sys.meta_path]
from imgsvc_cli.app import run
sys.exit(run(sys.argv[1:]))
"""


def _run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PLAIN, *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("keys list", "http"),
        ("accounts list", "http"),
        ("keyfiles key", "http"),
        ("serve --print-config", "http"),
        ("process s3://bucket/a.jpg", "s3"),
        ("process gs://bucket/a.jpg", "google"),
        ("process az://bucket/a.jpg", "azure"),
        ("process oss://bucket/a.jpg", "alibaba"),
        ("process http://localhost/a.jpg", "http"),
        ("process photo.png -o s3://bucket/a.png", "s3"),
        ("process photo.png -o a.heic", "heic"),
        ("batch s3://bucket small --resize 60x", "s3"),
        ("batch gs://bucket small --resize 60x", "google"),
        ("batch https://localhost/*.jpg small --resize 60x", "http"),
        ("batch . az://bucket --resize 60x", "azure"),
        ("batch s3://bucket --in-place --resize 60x", "s3"),
    ],
)
def test_what_is_missing_is_told_with_its_extra(line: str, extra: str, tmp_path: Path) -> None:
    as_vips(coffee()).pngsave(str(tmp_path / "photo.png"))
    done = _run(*line.split(), folder=tmp_path)
    assert (done.returncode, done.stdout) == (6, "")
    assert f"pip install 'imgsvc[{extra}]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_pictures_are_processed_all_the_same(tmp_path: Path) -> None:
    as_vips(coffee()).pngsave(str(tmp_path / "photo.png"))
    done = _run("process", "photo.png", "-o", "a.webp", "--resize", "60x", "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["output"]["width"] == 60
