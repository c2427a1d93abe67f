"""The S3 protocol, for the four providers that speak it, through s3fs."""

from __future__ import annotations

import asyncio
import functools
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import attrs
import s3fs
from aiobotocore.awsrequest import AioAWSResponse
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession
from botocore.configprovider import BOTOCORE_DEFAUT_SESSION_VARIABLES
from botocore.exceptions import ClientError

from imgsvc_core._runtime.private_names import SessionOfAiobotocore, call_s3
from imgsvc_core.errors import TargetError
from imgsvc_core.spec.store.declarations import StoreSpec
from imgsvc_stores.access import Access
from imgsvc_stores.failures import connection_failed, error_of_status, first_cause, translating
from imgsvc_stores.masking import masked, unavailable
from imgsvc_stores.providers.http_bodies import tracing_for
from imgsvc_stores.providers.multipart import fits_one_request, send_parts, upload
from imgsvc_stores.providers.resolver import DaemonThreadResolver
from imgsvc_stores.providers.responses import retry_with_new_token
from imgsvc_stores.providers.tokens import Tokens
from imgsvc_stores.providers.unconfigured import UnconfiguredFileSystem

_NO_FILE = (None, None, os.devnull, None)
_ALONE = {
    name: (None, None, default, convert)
    for name, (_, _, default, convert) in BOTOCORE_DEFAUT_SESSION_VARIABLES.items()
} | {"config_file": _NO_FILE, "credentials_file": _NO_FILE}  # ignore files and environment
_HOST_LABEL = re.compile(r"[a-z0-9-]{1,63}")
_TEMPORARY_CODES = frozenset({"OperationAborted", "RequestTimeout", "SlowDown"})


class ObjectFileSystem(UnconfiguredFileSystem, s3fs.S3FileSystem):  # type: ignore[misc]  # a base has no types
    """The buckets of a server."""


@attrs.frozen
class S3Session:
    """Write objects to the buckets of one server."""

    filesystem: ObjectFileSystem = attrs.field(repr=False)
    endpoint: str
    host_style: bool  # whether the name of a bucket is part of the host's
    pace: Callable[[], Awaitable[None]] = attrs.field(repr=False)
    tokens: Tokens[str] | None = attrs.field(default=None, repr=False)

    async def write(self, spec: StoreSpec, name: str, data: bytes, content_type: str) -> str:
        bucket: str = getattr(spec, "bucket")  # noqa: B009 (each store that speaks S3 has one)
        put = functools.partial(self._put, spec, {"Bucket": bucket, "Key": name}, data, content_type)
        if self.tokens is None:
            await translating(spec, put(), _translated)
        else:
            work = retry_with_new_token(self.tokens, put, _withdrawn)
            await translating(spec, work, _translated, self.tokens.secrets)
        return f"{self.address(bucket)}/{quote(name, safe='/~')}"

    def address(self, bucket: str) -> str:
        """Return the public address of a bucket. A wildcard certificate covers no bucket name with dots."""
        if self.host_style and _HOST_LABEL.fullmatch(bucket):
            return self.endpoint.replace("://", f"://{bucket}.")
        return f"{self.endpoint}/{bucket}"

    async def close(self) -> None:
        client = await self.filesystem.set_session()
        await client.close()

    async def _put(self, spec: StoreSpec, where: Mapping[str, str], data: bytes, content_type: str) -> None:
        how = parameters(spec, content_type)
        part_bytes: int = getattr(spec, "part_bytes")  # noqa: B009
        if fits_one_request(data, part_bytes):
            await self._call("put_object", **where, Body=data, **how)
            return
        async with upload(self._begin(where, how), self._abort) as whole:
            parts = await send_parts(data, part_bytes, functools.partial(self._put_part, whole), self.pace)
            await self._call("complete_multipart_upload", **whole, MultipartUpload={"Parts": parts})

    async def _begin(self, where: Mapping[str, str], how: Mapping[str, Any]) -> dict[str, str]:
        begun = await self._call("create_multipart_upload", **where, **how)
        return {**where, "UploadId": _told(begun, "UploadId")}

    async def _abort(self, whole: Mapping[str, str]) -> None:
        await self._call("abort_multipart_upload", **whole)

    async def _put_part(self, where: Mapping[str, str], number: int, data: bytes) -> dict[str, Any]:
        answer = await self._call("upload_part", **where, PartNumber=number, Body=data)
        return {"PartNumber": number, "ETag": _told(answer, "ETag")}

    async def _call(self, method: str, **arguments: Any) -> Any:
        return await call_s3(self.filesystem, method, **arguments)


async def connect(
    access: Access,
    address: str,
    *,
    region: str,
    host_style: bool = True,
    tokens: Tokens[str] | None = None,
    **credentials: str | None,
) -> S3Session:
    """Open a session with a server. The session does not retry, because all stores share one policy for
    that.

    Requests are signed with ``credentials``, or carry one of ``tokens``.
    """
    replaced = access.spec.provider in access.endpoints
    endpoint = access.endpoint(access.spec.provider, address)
    host_style = host_style and not replaced
    settings: dict[str, Any] = {
        "connect_timeout": 5,
        "read_timeout": 30,
        "max_pool_connections": 64,
        "connector_args": {"resolver": DaemonThreadResolver()},
        "retries": {"total_max_attempts": 1, "mode": "standard"},
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
        "s3": {"addressing_style": "virtual" if host_style else "path"},
        "http_session_cls": functools.partial(_StayingSession, tracing_for(access.pace), tokens),
    }
    client_session = await asyncio.to_thread(_warm_session)
    await access.pace()
    filesystem = ObjectFileSystem(
        **credentials,
        anon=tokens is not None,
        asynchronous=True,
        endpoint_url=endpoint,
        session=client_session,
        client_kwargs={"region_name": region},
        config_kwargs=settings,
    )
    filesystem.retries = 1
    client = await filesystem.set_session()
    client.meta.events.register("before-call.s3", _stay_in_the_region)
    client.meta.events.register("before-sign.s3", functools.partial(_wait, access.pace))
    return S3Session(filesystem, endpoint, host_style, access.pace, tokens)


def _told(answer: Mapping[str, Any], name: str) -> str:
    if name not in answer:
        raise OSError(f"it gave no {name}")
    return str(answer[name])


class _StayingSession(SessionOfAiobotocore, AIOHTTPSession):  # type: ignore[misc]  # a base has no types
    """An HTTP session that follows no redirects."""

    def __init__(self, tracing: aiohttp.TraceConfig, tokens: Tokens[str] | None, **settings: Any) -> None:
        super().__init__(**settings | {"proxies": {}})  # no settings of the environment
        self._tracing = tracing
        self._tokens = tokens

    async def send(self, request: Any) -> AioAWSResponse:
        """Return the response with tokens masked, because botocore logs it."""
        answer = await super().send(request)
        if self._tokens is None:
            return answer
        secrets = self._tokens.secrets()
        headers = {name: masked(text, secrets) for name, text in answer.headers.items()}
        body = masked((await answer.content).decode("latin-1"), secrets).encode("latin-1")
        return AioAWSResponse(answer.url, answer.status_code, headers, _Whole(body))

    def prepared(self, session: aiohttp.ClientSession) -> Any:
        """Trace the session's connections, and send by `_request`."""
        if self._tracing not in session.trace_configs:
            session.trace_configs.append(self._tracing)
        return SimpleNamespace(request=functools.partial(self._request, session))

    async def _request(
        self, session: aiohttp.ClientSession, method: str, *, headers: Any, **more: Any
    ) -> aiohttp.ClientResponse:
        if self._tokens is not None:  # added last, because botocore logs its requests
            headers["Authorization"] = f"Bearer {await self._tokens.current()}"
        return await session.request(method, headers=headers, allow_redirects=False, **more)


@attrs.frozen
class _Whole:
    """A response body that has been read."""

    data: bytes

    async def read(self) -> bytes:
        return self.data


def _stay_in_the_region(context: dict[str, Any], **more: Any) -> None:
    """Disable redirects to other regions: a bucket elsewhere is an error of the request."""
    context.setdefault("s3_redirect", {})["redirected"] = True


async def _wait(pace: Callable[[], Awaitable[None]], **more: Any) -> None:
    """Sign one request in each round of the event loop, because a checksum blocks it for milliseconds."""
    await pace()


def parameters(spec: StoreSpec, content_type: str) -> dict[str, Any]:
    """Return the parameters of an object in terms of the S3 protocol."""
    found: dict[str, Any] = {"ACL": canned_acl(spec), "ContentType": content_type}
    storage_class = getattr(spec, "storage_class", "standard")
    if storage_class != "standard":
        found["StorageClass"] = storage_class.upper().replace("-", "_")
    if metadata := getattr(spec, "metadata", ()):
        found["Metadata"] = dict(metadata)
    if tags := getattr(spec, "tags", ()):
        found["Tagging"] = urlencode(tags, quote_via=quote)  # some servers do not decode a plus sign
    for name, value in getattr(spec, "headers", ()):
        found[name.replace("-", "")] = parsedate_to_datetime(value) if name == "Expires" else value
    return found


def canned_acl(spec: StoreSpec) -> str:
    """Return an ACL as S3 writes it: ``publicRead`` becomes ``public-read``."""
    acl: str = getattr(spec, "acl")  # noqa: B009
    return re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", acl)


@functools.cache
def _warm_session() -> AioSession:
    """Return a botocore session that has read the protocol descriptions, which makes clients cheap."""
    session = AioSession(session_vars=_ALONE)
    loader = session.get_component("data_loader")
    for name in ("service-2", "endpoint-rule-set-1", "paginators-1"):
        loader.load_service_model("s3", name)
    for name in ("endpoints", "partitions", "sdk-default-configuration"):
        loader.load_data_with_path(name)
    return session


def _withdrawn(error: Exception) -> bool:
    answer = first_cause(error, ClientError)
    return answer is not None and _status(answer) == HTTPStatus.UNAUTHORIZED


def _status(answer: ClientError) -> int:
    status: int = answer.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status


def _translated(spec: StoreSpec, error: BaseException) -> TargetError:
    answer = first_cause(error, ClientError)
    if answer is None:
        return connection_failed(spec, error)
    status = _status(answer)
    said = answer.response.get("Error", {})
    code, message = str(said.get("Code", status)), str(said.get("Message") or "without an explanation")
    if code in _TEMPORARY_CODES:
        return unavailable(spec, f"{code}: {message}")
    return error_of_status(spec, status, code, message)
