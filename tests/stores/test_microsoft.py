"""Azure's blobs, against Azurite."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobServiceClient, PublicAccess

from tests.stores.contract import Destination, Kept, StoreContract, anonymous
from tests.stores.servers.azurite import azurite

_ACCOUNT, _CONTAINER = "imgsvcpictures", "pictures"
_KEY = base64.b64encode(b"canary-key-of-the-account").decode()
_WRONG_KEY = base64.b64encode(b"another-canary").decode()


@pytest.fixture(scope="module")
def account() -> Iterator[BlobServiceClient]:
    """An account with a container that strangers can read, and one that they cannot."""
    with azurite({_ACCOUNT: _KEY}) as url:
        credential = {"account_name": _ACCOUNT, "account_key": _KEY}
        with BlobServiceClient(f"{url}/{_ACCOUNT}", credential=credential) as client:
            client.create_container(_CONTAINER, public_access=PublicAccess.BLOB)
            client.create_container("private")
            yield client


@pytest.fixture
def destination(account: BlobServiceClient) -> Destination:
    def read(name: str) -> Kept | None:
        blob = account.get_blob_client(_CONTAINER, name)
        try:
            found = blob.download_blob(decompress=False)
        except ResourceNotFoundError:
            return None
        settings = found.properties.content_settings
        headers = {
            "Cache-Control": settings.cache_control,
            "Content-Encoding": settings.content_encoding,
            "Content-Language": settings.content_language,
            "Content-Disposition": settings.content_disposition,
        }
        return Kept(
            data=found.readall(),
            content_type=settings.content_type or "",
            headers={name: text for name, text in headers.items() if text},
            metadata=found.properties.metadata or {},
        )

    return Destination(
        store={"provider": "microsoft", "account": _ACCOUNT, "key": _KEY, "container": _CONTAINER},
        endpoints={"microsoft": account.url.rstrip("/")},
        read=read,
        refusals={
            "secret": ({"key": _WRONG_KEY}, ("AuthorizationFailure", "AuthenticationFailed")),
            "bucket": ({"container": "nobodys-container"}, ("ContainerNotFound",)),
        },
        secrets=(_KEY, _WRONG_KEY),
    )


class TestMicrosoft(StoreContract):
    """The contract, and what is Azure's own."""

    def test_a_container_may_be_private(self, destination: Destination, account: BlobServiceClient) -> None:
        url = destination.put(b"private", path="cat.webp", container="private")
        assert anonymous(url) is None
        assert account.get_blob_client("private", "cat.webp").download_blob().readall() == b"private"
