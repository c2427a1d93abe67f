"""Private names of dependencies that the core uses.

No other module of the core uses any, so a release that renames one fails one test. The dependencies are not
imported, because most of them are optional. The classes are mixins, which come before the class of the
dependency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyvips
    from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile


def keep_alive(image: pyvips.Image, needed: object) -> None:
    """Keep an object as long as an image of pyvips lives."""
    image._references.append(needed)


def read_resolution(picture: Jpeg2KImageFile, size: tuple[int, int], reduce: int) -> None:
    """Let Pillow decode a lower resolution of a JPEG 2000 file: ``size``, halved ``reduce`` times."""
    from PIL.ImageFile import _Tile

    codec, _, offset, arguments = picture.tile[0]
    assert isinstance(arguments, tuple)
    picture._size = size
    picture.tile = [_Tile(codec, (0, 0, *size), offset, (arguments[0], reduce, *arguments[2:]))]


async def call_s3(filesystem: Any, method: str, **arguments: Any) -> Any:
    """Call a method of the S3 API by s3fs."""
    return await filesystem._call_s3(method, **arguments)


async def get_raw_from_google(filesystem: Any, bucket: str, key: str, start: int, end: int) -> bytes:
    """Return bytes of an object by gcsfs, without undoing their ``Content-Encoding``.

    gcsfs would decode the part as if it were the whole. Google itself decodes, and then sends the whole, if
    the request does not accept gzip.
    """
    session = await filesystem._set_session()
    headers = {"Range": f"bytes={start}-{end - 1}", "Accept-Encoding": "gzip"}
    async with session.get(
        filesystem.url(f"{bucket}/{key}"),
        params=filesystem._get_params({}),
        headers=filesystem._get_headers(headers),
        auto_decompress=False,
    ) as response:
        response.raise_for_status()
        return bytes(await response.read())


def info_of_oss(filesystem: Any, bucket: str, key: str) -> dict[str, Any]:
    """Return the facts of an object in a bucket of Alibaba.

    ossfs's own `info` lists the whole folder, gives no ETag, and fails without a cache of listings.
    """
    found = filesystem._call_oss("head_object", key, bucket=bucket)
    return {
        "size": found.content_length,
        "ETag": found.etag,
        "LastModified": found.last_modified,
        "headers": dict(found.headers),
        "encoding": found.headers.get("Content-Encoding", ""),
        "cache_control": found.headers.get("Cache-Control", ""),
    }


def get_raw_from_oss(filesystem: Any, bucket: str, key: str, start: int, end: int) -> bytes:
    """Return bytes of an object in a bucket of Alibaba, without undoing their ``Content-Encoding``."""
    found = filesystem._call_oss("get_object", key, bucket=bucket, byte_range=(start, end - 1))
    with found.resp.response as response:
        return bytes(response.raw.read(decode_content=False))


class SessionOfAiobotocore:
    """Gives each HTTP session of aiobotocore to `prepared`, and uses the session that it returns."""

    async def _get_session(self, proxy_url: str | None) -> Any:
        return self.prepared(await super()._get_session(proxy_url))  # type: ignore[misc]

    def prepared(self, session: Any) -> Any:
        """Return the session that sends the requests."""
        raise NotImplementedError


class BodiesOfAzure:
    """Gives the body of each request of the Azure SDK to `body`, and sends the body that it returns."""

    def _get_request_data(self, request: Any) -> Any:
        return self.body(super()._get_request_data(request))  # type: ignore[misc]

    def body(self, data: Any) -> Any:
        """Return the body to send."""
        raise NotImplementedError


class RequestsOfGcsfs:
    """Gives each request of gcsfs to `send_request`, which may use the other methods."""

    _location: str

    @property
    def server_address(self) -> str:
        """The address of the server."""
        return self._location

    async def http_session(self) -> Any:
        """Return the HTTP session."""
        return await self._set_session()  # type: ignore[attr-defined]

    async def call_api(self, method: str, path: str, *arguments: str, **parameters: Any) -> Any:
        """Call the JSON API, with retries."""
        return await self._call(method, path, *arguments, **parameters)  # type: ignore[attr-defined]

    def filled_path(self, path: str, arguments: tuple[str, ...]) -> str:
        """Return a path with its arguments."""
        return str(self._format_path(path, arguments))  # type: ignore[attr-defined]

    def query_of(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of a query."""
        found: dict[str, Any] = self._get_params(given)  # type: ignore[attr-defined]
        return found

    async def _request(self, method: str, path: str, *args: str, **more: Any) -> Any:
        return await self.send_request(method, path, *args, **more)

    async def send_request(self, method: str, path: str, *arguments: str, **more: Any) -> Any:
        """Send a request. Return its status, headers, facts and body."""
        raise NotImplementedError
