"""``imgsvc process --store FILE``, against a server that speaks S3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import imgsvc_core as imgsvc
import imgsvc_stores as stores
from imgsvc_cli import app
from imgsvc_cli.stores import StoreTarget
from tests.stores.contract import anonymous
from tests.stores.s3_server import BUCKET, S3Server
from tests.support.photos import as_vips, coffee

_AWS = {"provider": "aws", "bucket": BUCKET, "region": "us-east-1"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3: S3Server) -> Path:
    """A folder with two pictures, where stores lead to the test server."""
    write = stores.write

    def write_here(*args: Any, **options: Any) -> str:
        return write(*args, **{**options, "endpoints": {"aws": s3.url}})

    monkeypatch.setattr(stores, "write", write_here)
    monkeypatch.chdir(tmp_path)
    for name in ("one.jpg", "two.png"):
        as_vips(coffee()).write_to_file(str(tmp_path / name))
    return tmp_path


def _store(folder: Path, **document: Any) -> str:
    path = folder / "store.json"
    path.write_text(json.dumps({**_AWS, **document}))
    return str(path)


def test_results_go_to_the_store(folder: Path, s3: S3Server, capsys: pytest.CaptureFixture[str]) -> None:
    store = _store(folder, key=s3.key, secret=s3.secret, path="command/")
    assert app.run(["process", "one.jpg", "two.png", "--store", store, "--format", "webp", "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["output"]["url"] for line in told] == [
        f"{s3.url}/{BUCKET}/command/{name}.webp" for name in ("one", "two")
    ]
    for line in told:
        data = anonymous(line["output"]["url"])
        assert data is not None
        assert imgsvc.inspect(data).format == "webp"
        assert s3.client.head_object(Bucket=BUCKET, Key="command/one.webp")["ContentType"] == "image/webp"
    assert not list(folder.glob("*-out*"))


def test_credentials_come_from_the_environment(
    folder: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("IMGSVC_STORE_KEY", s3.key)
    monkeypatch.setenv("IMGSVC_STORE_SECRET", s3.secret)
    assert app.run(["process", "one.jpg", "--store", _store(folder, path="from the environment.jpg")]) == 0
    assert f"{s3.url}/{BUCKET}/from%20the%20environment.jpg" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sources", "arguments", "stored"),
    [
        (["one.jpg", "b/one.jpg"], [], []),
        (["two.png", "b/two.jpg"], ["--format", "webp"], []),
        (["two.png", "b/two.jpg"], [], ["two.jpg", "two.png"]),
    ],
)
def test_two_results_of_one_name_are_refused_before_anything_is_stored(
    folder: Path,
    s3: S3Server,
    capsys: pytest.CaptureFixture[str],
    sources: list[str],
    arguments: list[str],
    stored: list[str],
) -> None:
    (folder / "b").mkdir()
    for name in ("one.jpg", "two.jpg"):
        as_vips(coffee()).write_to_file(str(folder / "b" / name))
    prefix = f"{folder.name}/"
    store = _store(folder, key=s3.key, secret=s3.secret, path=prefix)
    code = app.run(["process", *sources, "--store", store, *arguments])
    listed = s3.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    assert [item["Key"].removeprefix(prefix) for item in listed] == stored
    assert (code == 0) == bool(stored)
    if not stored:
        error = capsys.readouterr().err
        assert all(f"'{source}'" in error for source in sources)


@pytest.mark.parametrize(
    ("document", "taken"),
    [
        ({"key": "k", "secret": "s"}, ("k", "s")),
        ({"key": "k"}, ("k", "secret-of-the-environment")),
        ({"key": None, "secret": "s"}, ("key-of-the-environment", "s")),
        ({"keyfile": "account.json"}, (None, None)),
    ],
)
def test_credentials_of_the_document_keep_those_of_another_kind_away(
    tmp_path: Path, document: dict[str, Any], taken: tuple[str | None, str | None]
) -> None:
    (tmp_path / "account.json").write_text("{}")
    document = {name: str(tmp_path / text) if name == "keyfile" else text for name, text in document.items()}
    environment = {
        "IMGSVC_STORE_KEY": "key-of-the-environment",
        "IMGSVC_STORE_SECRET": "secret-of-the-environment",
        "IMGSVC_STORE_KEYFILE": "elsewhere.json",
    }
    found = StoreTarget.of({"provider": "google", "bucket": "pictures", **document}, environment).spec
    assert isinstance(found, stores.Google)
    assert (found.key, found.secret) == taken
    assert found.keyfile == document.get("keyfile")


def test_the_text_of_a_keyfile_in_the_place_of_its_path_is_not_repeated() -> None:
    store = {"provider": "google", "bucket": "pictures", "keyfile": '{"private_key": "canary"}'}
    with pytest.raises(imgsvc.SpecError, match="'keyfile' parameter must name a JSON file") as caught:
        StoreTarget.of(store, {})
    assert "canary" not in caught.value.message


def test_a_refusal_is_told_without_the_secret(
    folder: Path, s3: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    store = _store(folder, key=s3.key, secret="canary-secret")
    assert app.run(["process", "one.jpg", "--store", store]) == 5
    printed = "".join(capsys.readouterr())
    assert "SignatureDoesNotMatch" in printed
    assert "canary" not in printed


@pytest.mark.parametrize("name", ["o\\ne.jpg", "caf\udce9.jpg"], ids=["backslash", "latin"])
def test_a_name_that_no_object_can_have_is_told_with_what_to_do(
    folder: Path, s3: S3Server, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (folder / "one.jpg").rename(folder / name)
    keys = {"key": s3.key, "secret": s3.secret}
    assert app.run(["process", name, "--store", _store(folder, path="named/", **keys)]) == 2
    assert "'path' in the store document, or rename" in capsys.readouterr().err


def test_a_name_that_no_object_can_have_does_no_harm_to_a_whole_path(folder: Path, s3: S3Server) -> None:
    (folder / "one.jpg").rename(folder / "o\\ne.jpg")
    store = _store(folder, path="named/one.jpg", key=s3.key, secret=s3.secret)
    assert app.run(["process", "o\\ne.jpg", "--store", store]) == 0


@pytest.mark.parametrize(
    ("document", "arguments", "words"),
    [
        ({}, [], "and is required"),
        ({"key": "k", "secret": "s", "pth": "x"}, [], "did you mean 'path'"),
        ({"key": "k", "secret": "s"}, ["-o", "out.png"], "Give either --store or -o"),
        ({"key": "k", "secret": "s", "path": "x.jpg"}, ["two.png"], "must end in a slash for 2 sources"),
        ({"provider": "google", "region": None, "keyfile": "nowhere.json"}, [], "'keyfile' parameter"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_done(
    folder: Path,
    document: dict[str, Any],
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = _store(folder, **document)
    if document.get("region", "") is None:
        text = {
            name: value for name, value in json.loads(Path(store).read_text()).items() if value is not None
        }
        Path(store).write_text(json.dumps(text))
    assert app.run(["process", "one.jpg", *arguments, "--store", store]) in (2, 5)
    assert words in capsys.readouterr().err
