"""Which host is written to, and which address is given back, without asking anybody."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import imgsvc_stores as stores
from imgsvc_stores.access import Access
from imgsvc_stores.providers.s3 import S3Session, canned_acl
from imgsvc_stores.sessions import connect

_KEYS = {"key": "canary-key", "secret": "canary-secret"}
_AWS, _OCEAN, _GOOGLE = ({"provider": name, **_KEYS} for name in ("aws", "digitalocean", "google"))


def _addresses(store: dict[str, Any]) -> tuple[str, str]:
    """Where objects of a bucket are read by strangers, and where the client writes them."""

    async def find() -> tuple[str, str]:
        session = await connect(Access(stores.parse_store(store), None, {}, pace=partial(asyncio.sleep, 0)))
        assert isinstance(session, S3Session)
        assert "canary" not in repr(session)
        client = await session.filesystem.set_session()
        where = {"Bucket": store["bucket"], "Key": "NAME"}
        written = await client.generate_presigned_url("put_object", Params=where)
        await session.close()
        return session.address(store["bucket"]), written.partition("/NAME?")[0]

    return asyncio.run(find())


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ({**_AWS, "region": "eu-west-1", "bucket": "cats"}, "https://cats.s3.eu-west-1.amazonaws.com"),
        ({**_AWS, "region": "us-east-1", "bucket": "cats"}, "https://cats.s3.us-east-1.amazonaws.com"),
        ({**_AWS, "region": "cn-north-1", "bucket": "cats"}, "https://cats.s3.cn-north-1.amazonaws.com.cn"),
        ({**_AWS, "region": "eu-west-1", "bucket": "my.cats"}, "https://s3.eu-west-1.amazonaws.com/my.cats"),
        ({**_AWS, "region": "us-east-1", "bucket": "My_Cats"}, "https://s3.us-east-1.amazonaws.com/My_Cats"),
        ({**_OCEAN, "region": "ams3", "bucket": "cats"}, "https://cats.ams3.digitaloceanspaces.com"),
        ({**_OCEAN, "region": "ams3", "bucket": "my.cats"}, "https://ams3.digitaloceanspaces.com/my.cats"),
        ({**_GOOGLE, "bucket": "cats"}, "https://storage.googleapis.com/cats"),
        ({**_GOOGLE, "bucket": "my.cats"}, "https://storage.googleapis.com/my.cats"),
    ],
)
def test_an_object_is_read_where_it_is_written(store: dict[str, Any], expected: str) -> None:
    assert _addresses(store) == (expected, expected)


def test_the_settings_of_whoever_runs_the_program_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "config"
    settings.write_text("[profile other]\nendpoint_url = http://169.254.169.254\nregion = us-west-2\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(settings))
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://169.254.169.254")
    monkeypatch.setattr("imgsvc_stores.providers.s3._warm_session", _fresh_session())
    expected = "https://cats.s3.eu-west-1.amazonaws.com"
    assert _addresses({**_AWS, "region": "eu-west-1", "bucket": "cats"}) == (expected, expected)


def _fresh_session() -> Any:
    from imgsvc_stores.providers import s3

    return s3._warm_session.__wrapped__


@pytest.mark.parametrize(
    ("acl", "expected"),
    [
        ("publicRead", "public-read"),
        ("private", "private"),
        ("projectPrivate", "project-private"),
        ("bucketOwnerFullControl", "bucket-owner-full-control"),
    ],
)
def test_lists_of_google_are_written_in_the_words_of_s3(acl: str, expected: str) -> None:
    assert canned_acl(stores.parse_store({**_GOOGLE, "bucket": "cats", "acl": acl})) == expected
