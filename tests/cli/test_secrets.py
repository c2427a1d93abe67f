"""What the command writes for people holds no secrets of the URLs that it was given."""

from __future__ import annotations

from pathlib import Path

from tests.cli.test_command import run


def test_several_sources_that_cannot_be_read(tmp_path: Path) -> None:
    urls = [f"http://me:hidden@127.0.0.1:9/{name}.jpg?token=hidden" for name in ("one", "two")]
    done = run("process", *urls, "-o", f"{tmp_path}/", "--format", "webp")
    assert done.returncode == 3
    assert b"hidden" not in done.stdout + done.stderr
    for name in (b"one", b"two"):
        assert b"http://127.0.0.1:9/" + name + b".jpg: " in done.stderr
