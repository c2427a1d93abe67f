"""Servers that several tests of a run share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.stores.servers.applications import serving
from tests.stores.servers.failing import SPECS, Failing, write


@pytest.fixture
def server() -> Iterator[Failing]:
    """A server that fails as told."""
    made = Failing()
    with serving(lambda app: app.router.add_route("*", "/{path:.*}", made.handle)) as made.url:
        yield made


@pytest.fixture(scope="session")
def keyfile() -> dict[str, str]:
    """A keyfile of a service account that nobody knows."""
    key = rsa.generate_private_key(65_537, 2048)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return {"type": "service_account", "private_key": text, "client_email": "a@example.org"}


@pytest.fixture(params=SPECS)
def provider(request: pytest.FixtureRequest) -> str:
    """Each provider whose client is not S3's alone."""
    return str(request.param)


Put = Callable[..., str]


@pytest.fixture
def put(provider: str, keyfile: dict[str, str]) -> Put:
    """Write to a server in the provider's place."""
    import imgsvc_stores.providers.google_keyfile  # noqa: F401  (loading it would count in the first seconds)

    def put(url: str, seconds: float = 20, data: bytes = b"picture") -> str:
        return write(provider, url, keyfile, data, seconds)

    return put
