"""Settings of whoever runs the program hold for no write of somebody else's."""

from __future__ import annotations

from typing import Any

import pytest
from fsspec.config import conf

from tests.stores.servers.failing import SPECS, Failing, write

_PROTOCOLS = ("s3", "s3a", "gs", "gcs", "abstract")
_SETTINGS: list[dict[str, Any]] = [
    {"token": "operators-own"},
    {"project": "operators-own"},
    {"endpoint_url": "http://operators-own.invalid"},
    {"requester_pays": True, "s3_additional_kwargs": {"ServerSideEncryption": "operators-own"}},
]


@pytest.mark.parametrize("settings", _SETTINGS, ids=lambda settings: next(iter(settings)))
@pytest.mark.parametrize("provider", [*SPECS, "aws"], indirect=True)
def test_the_configuration_of_fsspec_changes_nothing(
    server: Failing,
    provider: str,
    keyfile: dict[str, str],
    settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It comes from files and from variables like ``FSSPEC_S3_TOKEN``."""
    for protocol in _PROTOCOLS:
        monkeypatch.setitem(conf, protocol, settings)
    write(provider, server.url, keyfile, seconds=20)
    assert server.requests
    sent = " ".join(server.requests).lower()
    assert "operators-own" not in sent
    assert "requester" not in sent
