"""Endpoints and public addresses that take the place of a provider's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from imgsvc_cli import app
from imgsvc_stores import StoredObject, StorePool, parse_store
from tests.stores.servers.failing import Failing
from tests.support import encoded

_AWS = {"provider": "aws", "key": "key", "secret": "secret", "bucket": "cats", "region": "us-east-1"}


@pytest.mark.asyncio
async def test_the_url_begins_with_the_public_address(server: Failing) -> None:
    public = {"aws": "https://pictures.example.org/"}
    async with StorePool(endpoints={"aws": server.url}, public_urls=public) as pool:
        spec = parse_store({**_AWS, "path": "a b/\N{LATIN SMALL LETTER E WITH ACUTE}.webp"})
        url = await pool.put(spec, StoredObject(b"picture", "x.webp", "image/webp"))
    assert url == "https://pictures.example.org/a%20b/%C3%A9.webp"
    assert any("/cats/" in request for request in server.requests)


def test_the_command_takes_endpoints(
    server: Failing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.png").write_bytes(encoded.png().data)
    (tmp_path / "store.json").write_text(json.dumps(_AWS))
    arguments = ["process", str(tmp_path / "one.png"), "--store", str(tmp_path / "store.json"), "--json"]
    assert app.run([*arguments, "--store-endpoint", f"aws={server.url}"]) == 0
    assert json.loads(capsys.readouterr().out)["output"]["url"] == f"{server.url}/cats/one.png"


@pytest.mark.parametrize(
    "wrong",
    [
        "minio=https://a.example", "aws", "aws=file:///etc", "https://a.example",
        "aws=https://user:canary@a.example", "aws=https://user:can/ary@a.example",
    ],
)  # fmt: skip
def test_wrong_endpoints_are_refused_in_a_sentence(
    wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "store.json").write_text(json.dumps(_AWS))
    arguments = ["process", "one.png", "--store", str(tmp_path / "store.json")]
    assert app.run([*arguments, "--store-endpoint", wrong]) == 2
    told = capsys.readouterr().err
    assert "'--store-endpoint' must be NAME=URL without credentials, with one of the names aws, " in told
    assert "ary" not in told


@pytest.mark.parametrize("command", [["accounts", "list"], ["serve", "--print-config"]])
def test_credentials_of_stores_in_the_environment_stop_no_command(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMGSVC_SERVER_STATE_FOLDER", str(tmp_path))
    monkeypatch.setenv("IMGSVC_STORE_KEY", "key")
    monkeypatch.setenv("IMGSVC_STORE_SECRET", "secret")
    assert app.run(["db", "upgrade"]) == 0
    assert app.run(command) == 0
