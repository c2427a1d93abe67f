"""Servers whose names nobody answers for."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

import imgsvc_stores as stores
from tests.stores.servers.failing import SPECS, document


@pytest.mark.parametrize("provider", [*SPECS, "aws"], indirect=True)
def test_a_lookup_without_an_answer_is_not_waited_for_when_the_time_is_up(
    provider: str, keyfile: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, end, ended = threading.Event(), threading.Event(), threading.Event()

    def silent(*address: Any, **more: Any) -> Any:
        begun.set()
        end.wait(8)
        ended.set()
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    while not begun.is_set():  # a client that is imported first needs some time for it
        with pytest.raises(stores.StoreUnavailable, match="within"):
            stores.write(
                document(provider), b"picture", "cat.webp", "image/webp",
                keyfiles={"ours": keyfile}, seconds=0.5,
            )  # fmt: skip
    assert not ended.is_set()
    end.set()
