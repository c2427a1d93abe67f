"""Signatures: what was signed is accepted, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core import SpecError
from imgsvc_urls import Delivery, OriginSource, PictureUrl, Signer, sign, split, verify
from imgsvc_urls.errors import InvalidSignature, UrlExpired

SECRETS: dict[str, str | bytes] = {
    "old": "a secret of a signing key",
    "new_1": b"\x00another secret, in bytes",
}
TEXT = "/resize:800x/photos/a%20b.jpg"


def signed(key_id: str = "old", text: str = TEXT) -> str:
    return f"/{key_id}.{sign(SECRETS[key_id], text)}{text}"


@pytest.mark.parametrize("key_id", SECRETS)
def test_each_of_several_keys_counts(key_id: str) -> None:
    assert verify(signed(key_id), SECRETS) == TEXT


def test_the_signature_is_hmac_sha256_in_base64url() -> None:
    digest = hmac.new(b"a secret of a signing key", TEXT.encode(), hashlib.sha256).digest()
    assert sign("a secret of a signing key", TEXT) == base64.urlsafe_b64encode(digest).decode().rstrip("=")


@given(st.text(max_size=40))
def test_texts_are_signed_as_they_were_sent(text: str) -> None:
    sent = "/" + text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
    assert verify(signed(text=sent), SECRETS) == sent


@given(st.integers(0, len(signed()) - 1), st.characters(min_codepoint=33, max_codepoint=126))
def test_a_change_anywhere_is_noticed(place: int, character: str) -> None:
    path = signed()
    changed = path[:place] + character + path[place + 1 :]
    if changed.removeprefix("/") == path.removeprefix("/"):
        return
    with pytest.raises(InvalidSignature):
        verify(changed, SECRETS)


@pytest.mark.parametrize("length", range(len(signed())))
def test_a_cut_path_is_refused(length: int) -> None:
    with pytest.raises(InvalidSignature):
        verify(signed()[:length], SECRETS)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (signed().replace("%20", "%2520"), "is not that of signing key 'old'"),
        (signed().replace("%20", " "), "is not that of signing key 'old'"),
        (signed().replace("/photos", "%2Fphotos"), "is not that of signing key 'old'"),
        (signed().replace("/photos", "//photos"), "is not that of signing key 'old'"),
        (signed() + "?a=b", "is not that of signing key 'old'"),
        (signed().replace("old.", "new_1."), "is not that of signing key 'new_1'"),
        (signed().replace("old.", "gone."), "There is no signing key 'gone'"),
        (signed().replace("old.", "old%2E"), "must begin with its signature"),
        (signed().replace(TEXT, "=" + TEXT), "must begin with its signature"),
        (f"/unsigned{TEXT}", "must be signed, got 'unsigned'"),
        (f"/UNSIGNED{TEXT}", "must begin with its signature"),
        ("/" + signed(), "must begin with its signature"),
        (TEXT, "must begin with its signature"),
        ("/" + "\udc80" * 5000 + "/", "must begin with its signature"),
        ("", "must begin with its signature"),
    ],
)
def test_other_paths_are_refused_in_one_sentence(path: str, words: str) -> None:
    with pytest.raises(InvalidSignature) as caught:
        verify(path, SECRETS)
    assert words in caught.value.message
    assert len(caught.value.message) < 300
    assert caught.value.message.isascii()
    assert caught.value.message.endswith(".")


def test_the_bits_that_base64_leaves_over_are_not_free() -> None:
    path = signed()
    last = path.index(TEXT) - 1
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    others = [path[:last] + letter + path[last + 1 :] for letter in alphabet if letter != path[last]]
    for other in others:
        with pytest.raises(InvalidSignature):
            verify(other, SECRETS)


def test_a_path_without_signature_is_split_too() -> None:
    found = split(f"/unsigned{TEXT}")
    assert (found.key_id, found.signature, found.text) == (None, None, TEXT)


def test_a_url_expires() -> None:
    url = PictureUrl({}, OriginSource("photos", "a.jpg"), Delivery(expires=1000))
    url.check_expiry(999.9)
    with pytest.raises(UrlExpired, match="ask for a new one"):
        url.check_expiry(1000)
    PictureUrl({}, OriginSource("photos", "a.jpg")).check_expiry(10.0**12)


@pytest.mark.parametrize("secret", ["", "short", b"short"])
def test_short_secrets_are_refused_and_no_secret_is_shown(secret: str | bytes) -> None:
    with pytest.raises(SpecError, match="at least 16 characters, got fewer"):
        Signer("https://img.example.org", "k1", secret)
    assert "a secret" not in repr(Signer("https://img.example.org", "k1", SECRETS["old"]))
