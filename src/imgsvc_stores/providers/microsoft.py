"""Blobs of Microsoft Azure, through the client that fsspec's own backend is made of.

That backend, adlfs, takes connections from the environment and keeps every instance until the process ends.
Large blobs are staged as blocks here, because the tasks of the client's own `upload_blob` continue after it
is cancelled. Staged blocks are invisible, and Azure deletes them after a week.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import attrs
from azure.core.exceptions import HttpResponseError
from azure.core.pipeline.transport import AioHttpTransport
from azure.storage.blob import BlobBlock, ContentSettings
from azure.storage.blob.aio import BlobClient, BlobServiceClient
from fsspec.asyn import AsyncFileSystem

from imgsvc_core._runtime.private_names import BodiesOfAzure
from imgsvc_core.errors import TargetError
from imgsvc_core.spec.store.declarations import Microsoft, StoreSpec
from imgsvc_stores.access import Access
from imgsvc_stores.failures import connection_failed, error_of_status, translating
from imgsvc_stores.providers.http_bodies import Body, tracing_for
from imgsvc_stores.providers.multipart import fits_one_request, send_parts
from imgsvc_stores.providers.resolver import connector
from imgsvc_stores.providers.unconfigured import UnconfiguredFileSystem

_SETTINGS = {
    "Cache-Control": "cache_control",
    "Content-Type": "content_type",
    "Content-Encoding": "content_encoding",
    "Content-Language": "content_language",
    "Content-Disposition": "content_disposition",
}


async def connect(access: Access) -> MicrosoftSession:
    """Open a session with the account's own host."""
    spec = access.spec
    assert isinstance(spec, Microsoft)
    await access.pace()
    session = aiohttp.ClientSession(
        connector=connector(),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trace_configs=[tracing_for(access.pace)],
    )
    client = BlobServiceClient(
        access.endpoint("microsoft", f"https://{spec.account}.blob.core.windows.net"),
        credential={"account_name": spec.account, "account_key": spec.key},
        transport=_Transport(session=session, use_env_settings=False, connection_timeout=5, read_timeout=30),
        max_single_put_size=2**30,  # our own code decides what goes in one request
        retry_total=0,
        permit_redirects=False,
    )
    return MicrosoftSession(BlobFileSystem(client, access.pace))


@attrs.frozen
class MicrosoftSession:
    """Write blobs to the containers of one account."""

    filesystem: BlobFileSystem = attrs.field(repr=False)

    async def write(self, spec: StoreSpec, name: str, data: bytes, content_type: str) -> str:
        assert isinstance(spec, Microsoft)
        path = f"{spec.container}/{name}"
        headers = {"Content-Type": content_type, **dict(spec.headers)}
        write = self.filesystem._pipe_file(path, data, headers=headers, metadata=dict(spec.metadata))
        await translating(spec, write, _translated)
        return self.filesystem.url(path)

    async def close(self) -> None:
        await self.filesystem.client.close()


class BlobFileSystem(UnconfiguredFileSystem, AsyncFileSystem):  # type: ignore[misc]  # a base has no types
    """The containers of an account."""

    def __init__(self, client: BlobServiceClient, pace: Callable[[], Awaitable[None]]) -> None:
        super().__init__(asynchronous=True)
        self.client = client
        self.pace = pace

    async def _pipe_file(
        self, path: str, value: bytes, *, headers: dict[str, str], metadata: dict[str, str], **more: Any
    ) -> None:
        settings: dict[str, Any] = {_SETTINGS[name]: text for name, text in headers.items()}
        how: dict[str, Any] = {"metadata": metadata, "content_settings": ContentSettings(**settings)}
        blob = self._blob(path)
        if fits_one_request(value, Microsoft.part_bytes):
            await blob.upload_blob(value, length=len(value), overwrite=True, **how)
            return
        upload = uuid.uuid4().hex  # keeps concurrent writers of one blob apart

        async def stage(number: int, data: bytes) -> BlobBlock:
            block = f"{upload}-{number:06}"
            await blob.stage_block(block, data, length=len(data))
            return BlobBlock(block)

        await blob.commit_block_list(await send_parts(value, Microsoft.part_bytes, stage, self.pace), **how)

    def url(self, path: str) -> str:
        """Return the URL of a blob."""
        address: str = self._blob(path).url
        return address

    def _blob(self, path: str) -> BlobClient:
        container, _, name = path.partition("/")
        return self.client.get_blob_client(container, name)


class _Transport(BodiesOfAzure, AioHttpTransport):  # type: ignore[misc]  # a base has no types
    """Send bodies in chunks."""

    def body(self, data: Any) -> Any:
        return Body(data) if isinstance(data, bytes) else data


def _translated(spec: StoreSpec, error: BaseException) -> TargetError:
    if not isinstance(error, HttpResponseError) or error.status_code is None:
        return connection_failed(spec, error)
    said = getattr(error, "error_code", None) or error.status_code
    code = str(getattr(said, "value", said))
    message = str(error.message or "without an explanation").splitlines()[0]
    return error_of_status(spec, error.status_code, code, message)
