"""Google's storage with a keyfile, against an emulator behind a front that verifies claims and tokens."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

import imgsvc_stores as stores
from imgsvc_core import errors
from tests.stores.contract import Destination, Kept, StoreContract
from tests.stores.servers import google
from tests.stores.watch import stalls_for_less

_BUCKET, _EMAIL = "imgsvc-pictures", "writer@imgsvc.iam.gserviceaccount.com"
_LARGE_EMAIL = "large@imgsvc.iam.gserviceaccount.com"
_ACLS = {
    "publicRead": True,
    "private": False,
    "projectPrivate": False,
    "authenticatedRead": False,
    "bucketOwnerRead": False,
    "bucketOwnerFullControl": False,
}
_NAMES = {
    "Cache-Control": "cacheControl",
    "Content-Encoding": "contentEncoding",
    "Content-Language": "contentLanguage",
    "Content-Disposition": "contentDisposition",
}


def _pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _unfit(key: rsa.RSAPrivateKey) -> str:
    """The PEM of a key whose modulus is even."""
    modulus = key.public_key().public_numbers().n
    odd, even = (number.to_bytes(256, "big") for number in (modulus, modulus - 1))
    der = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()).replace(odd, even)
    lines = base64.encodebytes(der).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{lines}-----END PRIVATE KEY-----\n"


def _keyfile(key: rsa.RSAPrivateKey, email: str = _EMAIL) -> dict[str, str]:
    return {
        "type": "service_account",
        "project_id": "imgsvc",
        "private_key_id": "0123456789abcdef",
        "private_key": _pem(key),
        "client_email": email,
        "token_uri": "http://169.254.169.254/token",  # must not be asked
    }


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, 2048)


@pytest.fixture(scope="module")
def large_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, 4096)


@pytest.fixture(scope="module")
def front(key: rsa.RSAPrivateKey, large_key: rsa.RSAPrivateKey) -> Iterator[google.Front]:
    accounts = {_EMAIL: key.public_key(), _LARGE_EMAIL: large_key.public_key()}
    with google.front(accounts, _BUCKET, "imgsvc-of-somebody-else") as running:
        yield running


@pytest.fixture(scope="module")
def keyfiles(key: rsa.RSAPrivateKey, large_key: rsa.RSAPrivateKey) -> dict[str, Any]:
    return {
        "ours": _keyfile(key),
        "withdrawn": _keyfile(rsa.generate_private_key(65_537, 2048)),
        "large": _keyfile(large_key, _LARGE_EMAIL),
        "nobody": _keyfile(key, "nobody@imgsvc.iam.gserviceaccount.com"),
    }


@pytest.fixture
def destination(front: google.Front, keyfiles: dict[str, Any]) -> Destination:
    def read(name: str) -> Kept | None:
        address = google.object_address(front.emulator, _BUCKET, name)
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                about = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None
        with urllib.request.urlopen(f"{address}?alt=media", timeout=60) as answer:
            data = answer.read()
        return Kept(
            data=data,
            content_type=about["contentType"],
            headers={header: about[field] for header, field in _NAMES.items() if field in about},
            metadata=about.get("metadata", {}),
        )

    lines = [line for file in keyfiles.values() for line in file["private_key"].splitlines()[1:-1]]
    return Destination(
        store={"provider": "google", "keyfile": "ours", "bucket": _BUCKET},
        keyfiles=keyfiles,
        endpoints={"google": front.url, "google_token": front.url},
        read=read,
        refusals={
            "secret": ({"keyfile": "withdrawn"}, ("invalid_grant",)),
            "account": ({"keyfile": "nobody"}, ("invalid_grant",)),
            "bucket": ({"bucket": "nobodys-bucket"}, ("notFound",)),
            "permission": ({"bucket": "imgsvc-of-somebody-else"}, ("forbidden",)),
        },
        acls=_ACLS,
        secrets=tuple(lines),
    )


class TestGoogleWithAKeyfile(StoreContract):
    """The contract, and what is this way's own."""

    def test_tokens_are_in_no_log(
        self, destination: Destination, front: google.Front, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("DEBUG")
        destination.put(b"quiet", path="quiet.webp")
        assert front.tokens
        assert not [token for token in front.tokens if token in caplog.text]

    def test_a_clock_that_is_wrong_is_refused(
        self, destination: Destination, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slow = SimpleNamespace(time=lambda: time.time() - 7200)
        monkeypatch.setattr("imgsvc_stores.providers.google_keyfile.time", slow)
        with pytest.raises(stores.StoreRefused, match="reasonable timeframe") as caught:
            destination.put(b"late", path="late.webp")
        monkeypatch.undo()
        assert caught.value.code == "invalid_grant"
        assert destination.read("late.webp") is None


def test_a_keyfile_that_is_none_is_named(
    destination: Destination, keyfiles: dict[str, Any], key: rsa.RSAPrivateKey
) -> None:
    for broken in (
        {},
        {**keyfiles["ours"], "private_key": "canary"},
        {**keyfiles["ours"], "private_key": None},
        {"private_key": keyfiles["ours"]["private_key"]},
        {**keyfiles["ours"], "private_key": _pem(ec.generate_private_key(ec.SECP256R1()))},
        {**keyfiles["ours"], "private_key": _unfit(key)},
        *({**keyfiles["ours"], "client_email": odd} for odd in (5, {"a": 1}, "", "\ud800", "a b", None)),
    ):
        with pytest.raises(errors.SpecError) as caught:
            stores.write(
                destination.store,
                b"picture",
                "cat.webp",
                "image/webp",
                keyfiles={"ours": broken},
                endpoints=destination.endpoints,
            )
        assert [problem.path for problem in caught.value.problems] == ["store.keyfile"]
        assert "canary" not in caught.value.message


def test_a_token_that_is_withdrawn_is_replaced(destination: Destination, front: google.Front) -> None:
    async def run() -> list[int]:
        async with stores.open_store(
            destination.store, keyfiles=destination.keyfiles, endpoints=destination.endpoints
        ) as store:
            counts = []
            for _ in range(3):
                await store.put(stores.StoredObject(b"token", "token.webp", "image/webp"))
                counts.append(len(front.tokens))
            front.tokens[list(front.tokens)[-1]] = 0
            await store.put(stores.StoredObject(b"anew", "token.webp", "image/webp"))
            return [*counts, len(front.tokens)]

    first, *others = asyncio.run(run())
    assert others == [first, first, first + 1]
    assert destination.kept("token.webp").data == b"anew"


@pytest.mark.parametrize("odd", [{"a": 1}, 5, None, "\ud800"])
def test_the_id_of_a_key_may_be_anything(
    destination: Destination, keyfiles: dict[str, Any], odd: object
) -> None:
    destination = attrs.evolve(destination, keyfiles={"ours": {**keyfiles["ours"], "private_key_id": odd}})
    assert destination.put(b"id", path="id.webp").endswith("/id.webp")


def test_a_large_key_is_loaded_while_others_work(destination: Destination) -> None:
    """A check of its numbers would stop all threads for a quarter of a second."""
    large = attrs.evolve(destination, store={**destination.store, "keyfile": "large"})
    assert stalls_for_less(large, 0.1)


def test_a_slow_token_server_holds_nobody_else_up(
    destination: Destination, front: google.Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    destination.put(b"warm", path="warm.webp")
    monkeypatch.setattr(front, "token_seconds", 1.5)
    assert stalls_for_less(destination, 0.3)


def test_the_environment_changes_nothing(destination: Destination, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://169.254.169.254")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere")
    monkeypatch.setenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN", "example.org")
    destination.put(b"environment", path="environment.webp")
    assert destination.kept("environment.webp").data == b"environment"
