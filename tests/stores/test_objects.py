"""What is given to a store: names, files and keyfiles that are none are errors at once, and in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import imgsvc_stores as stores
from imgsvc_core import errors
from tests.stores.servers.failing import CANARY, SPECS, Failing, document, endpoints, write


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\\b", "a\0b", "\x7f", "caf\udce9.jpg", "\ud83d.jpg"]
)
def test_a_name_that_is_none_of_a_file_is_refused_and_shown_in_unicode(name: str) -> None:
    with pytest.raises(errors.SpecError, match="'name'") as caught:
        stores.StoredObject(b"picture", name, "image/webp")
    assert caught.value.problems[0].path == "store.name"
    assert caught.value.message.encode()


@pytest.mark.parametrize("content_type", ["", "image/webp\r\nX-Other: 1", "image/w\u00e9bp", " image/webp"])
def test_a_content_type_that_is_none_of_a_header_is_refused(content_type: str) -> None:
    with pytest.raises(errors.SpecError, match="'content_type'"):
        stores.StoredObject(b"picture", "cat.webp", content_type)


@pytest.mark.parametrize("provider", [*SPECS, "aws"], indirect=True)
def test_of_a_name_that_is_none_nothing_is_sent(
    server: Failing, provider: str, keyfile: dict[str, str]
) -> None:
    with pytest.raises(errors.SpecError, match="'name'"):
        stores.write(
            document(provider), b"picture", "caf\udce9.jpg", "image/jpeg",
            keyfiles={"ours": keyfile}, endpoints=endpoints(provider, server.url), seconds=3,
        )  # fmt: skip
    assert server.requests == []


def test_a_container_is_named_in_unicode() -> None:
    with pytest.raises(errors.SpecError, match="'container'"):
        stores.parse_store({**document("rackspace"), "container": "pets\udce9"})


def test_a_file_that_is_not_there_is_an_error_in_words(server: Failing, tmp_path: Path) -> None:
    with pytest.raises(errors.SourceUnreachable, match="cannot be read: No such file"):
        stores.write(
            document("aws"), tmp_path / "nothing.webp", "cat.webp", "image/webp",
            endpoints=endpoints("aws", server.url),
        )  # fmt: skip


@pytest.mark.parametrize("keyfile", ["text", 5, ["a"], b"{}"])
def test_a_keyfile_that_is_no_object_is_refused(keyfile: Any) -> None:
    with pytest.raises(errors.SpecError, match="'keyfile'"):
        write("google", "http://127.0.0.1:9", keyfile)


def test_a_keyfile_of_other_values_than_those_of_json_is_refused(server: Failing) -> None:
    keyfile: Any = {"client_email": "a@example.org", "private_key": b"bytes"}
    with pytest.raises(errors.SpecError, match="'keyfile'"):
        write("google", server.url, keyfile, seconds=60)


@pytest.mark.parametrize("name", ["provider", "keyfile"])
@pytest.mark.parametrize("more", ["", "x" * 300], ids=["short", "long"])
def test_the_text_of_a_keyfile_in_the_place_of_a_name_is_not_repeated(name: str, more: str) -> None:
    text = f'{{"private_key": "{CANARY}", "more": "{more}"}}'
    with pytest.raises(errors.SpecError, match=f"'{name}'") as caught:
        stores.open_store({**document("google"), name: text})
    assert CANARY not in caught.value.message
