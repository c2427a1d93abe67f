"""Alibaba Cloud's Object Storage Service, through Alibaba's own client.

The fsspec backend, ossfs, fails with current aiohttp or writes in threads, which cannot be cancelled.
"""

from __future__ import annotations

import base64
import functools
import io
import xml.etree.ElementTree as ElementTree
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import aiohttp
import alibabacloud_oss_v2 as oss
import attrs
from alibabacloud_oss_v2 import exceptions
from alibabacloud_oss_v2.aio import AsyncClient
from alibabacloud_oss_v2.aio.transport import AioHttpClient
from fsspec.asyn import AsyncFileSystem

from imgsvc_core.errors import TargetError
from imgsvc_core.spec.store.declarations import Alibaba, StoreSpec
from imgsvc_stores.access import Access
from imgsvc_stores.failures import translating
from imgsvc_stores.providers.digest import md5
from imgsvc_stores.providers.http_bodies import tracing_for
from imgsvc_stores.providers.multipart import fits_one_request, send_parts, upload
from imgsvc_stores.providers.resolver import connector
from imgsvc_stores.providers.responses import ResponseError, text_of, translated
from imgsvc_stores.providers.unconfigured import UnconfiguredFileSystem

_WRAPPERS = (exceptions.OperationError, exceptions.RequestError, exceptions.ResponseError)


async def connect(access: Access) -> AlibabaSession:
    """Open a session at the regional endpoint. The region may begin with ``oss-``, as in its host name."""
    spec = access.spec
    assert isinstance(spec, Alibaba)
    region = spec.region.removeprefix("oss-")
    address = access.endpoint("alibaba", f"https://oss-{region}.aliyuncs.com")
    host_style = "alibaba" not in access.endpoints
    await access.pace()
    session = aiohttp.ClientSession(connector=connector(), trace_configs=[tracing_for(access.pace)])
    client = AsyncClient(
        oss.config.Config(
            region=region,
            endpoint=address,
            credentials_provider=oss.credentials.StaticCredentialsProvider(spec.key, spec.secret),
            retry_max_attempts=1,
            http_client=_HttpClient(session=session, connect_timeout=5, readwrite_timeout=30),
            use_path_style=not host_style,
            disable_upload_crc64_check=True,  # the server checks the MD5 digest
        )
    )
    return AlibabaSession(OssFileSystem(client, address, host_style, access.pace), session)


@attrs.frozen
class AlibabaSession:
    """Write objects to the buckets of one region."""

    filesystem: OssFileSystem = attrs.field(repr=False)
    http: aiohttp.ClientSession = attrs.field(repr=False)

    async def write(self, spec: StoreSpec, name: str, data: bytes, content_type: str) -> str:
        assert isinstance(spec, Alibaba)
        path = f"{spec.bucket}/{name}"
        headers = {"Content-Type": content_type, **dict(spec.headers)}
        write = self.filesystem._pipe_file(path, data, headers=headers, metadata=dict(spec.metadata))
        await translating(spec, write, _translated)
        return self.filesystem.url(path)

    async def close(self) -> None:
        await self.http.close()


class OssFileSystem(UnconfiguredFileSystem, AsyncFileSystem):  # type: ignore[misc]  # a base has no types
    """The buckets of a region."""

    def __init__(
        self, client: AsyncClient, address: str, host_style: bool, pace: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(asynchronous=True)
        self.client = client
        self.address = address
        self.host_style = host_style
        self.pace = pace

    async def _pipe_file(
        self, path: str, value: bytes, *, headers: Mapping[str, str], metadata: Mapping[str, str], **more: Any
    ) -> None:
        bucket, _, key = path.partition("/")
        where = {"bucket": bucket, "key": key}
        how = {"headers": dict(headers), "metadata": dict(metadata) or None}
        if fits_one_request(value, Alibaba.part_bytes):
            await self.client.put_object(oss.PutObjectRequest(**where, **how, **await _body(value)))
            return
        async with upload(self._begin(where, how), self._abort) as whole:
            send = functools.partial(self._put_part, whole)
            parts = await send_parts(value, Alibaba.part_bytes, send, self.pace)
            named = oss.CompleteMultipartUpload(parts=parts)
            await self.client.complete_multipart_upload(
                oss.CompleteMultipartUploadRequest(**whole, complete_multipart_upload=named)
            )

    async def _begin(self, where: Mapping[str, str], how: Mapping[str, Any]) -> dict[str, str]:
        begun = await self.client.initiate_multipart_upload(
            oss.InitiateMultipartUploadRequest(**where, **how)
        )
        if not begun.upload_id:
            raise OSError("it gave no UploadId")
        return {**where, "upload_id": begun.upload_id}

    async def _abort(self, whole: Mapping[str, str]) -> None:
        await self.client.abort_multipart_upload(oss.AbortMultipartUploadRequest(**whole))

    async def _put_part(self, whole: Mapping[str, str], number: int, data: bytes) -> oss.UploadPart:
        part = oss.UploadPartRequest(**whole, part_number=number, **await _body(data))
        answer = await self.client.upload_part(part)
        return oss.UploadPart(part_number=number, etag=answer.etag)

    def url(self, path: str) -> str:
        """Return the URL of an object."""
        bucket, _, name = path.partition("/")
        place = (
            self.address.replace("://", f"://{bucket}.") if self.host_style else f"{self.address}/{bucket}"
        )
        return f"{place}/{quote(name, safe='/~')}"


class _HttpClient(AioHttpClient):  # type: ignore[misc]  # a base has no types
    """Read error responses here, because the client misreads those without a date.

    A response with a success status whose body names an error is a failure of the server.
    """

    async def send(self, request: Any, **how: Any) -> Any:
        answer = await super().send(request, **how)
        yes = HTTPStatus.OK <= answer.status_code < HTTPStatus.MULTIPLE_CHOICES
        error = _error(answer.content)
        if yes and error is None:
            return answer
        status = HTTPStatus.INTERNAL_SERVER_ERROR if yes else answer.status_code
        code, message = error or (None, None)
        raise ResponseError(
            status, text_of(code, answer.status_code), text_of(message, "without an explanation")
        )


def _error(body: bytes) -> tuple[str | None, str | None] | None:
    """Return code and message of an XML error, or None for any other body."""
    try:
        root = ElementTree.fromstring(body)
    except (ElementTree.ParseError, LookupError, ValueError):
        return None
    return (root.findtext("Code"), root.findtext("Message")) if root.tag == "Error" else None


async def _body(data: bytes) -> dict[str, Any]:
    digest = base64.b64encode(await md5(data)).decode()
    return {"body": io.BytesIO(data), "content_length": len(data), "content_md5": digest}


def _translated(spec: StoreSpec, error: BaseException) -> TargetError:
    while isinstance(error, _WRAPPERS):  # these classes name no cause
        error = error.unwrap()
    return translated(spec, error)
