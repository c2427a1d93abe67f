"""The main calls as people write them in a shell: with curl, over TLS."""

from __future__ import annotations

import asyncio
import io
import json
import uuid
from collections.abc import AsyncIterator
from email import message_from_string
from email.message import Message
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio
from aiohttp import web
from PIL import Image

from tests.http.service_process import Service
from tests.http.sources import serving
from tests.http.state.test_keyfiles import KEYFILE
from tests.support import encoded, photos, requires
from tests.support.handmade import pillow

pytestmark = pytest.mark.asyncio

_FAILED_BY_STATUS = 22
_NOT_TRUSTED = 60


@attrs.frozen
class Said:
    """What curl received: the last answer, where there was one to continue on before it."""

    exit: int
    status: int
    headers: Message
    body: bytes = attrs.field(repr=False)
    sent: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def picture(self) -> Image.Image:
        return Image.open(io.BytesIO(self.body))


@attrs.frozen
class Curl:
    """The program, with the service's certificate and a key."""

    program: str
    service: Service
    folder: Path

    async def __call__(
        self,
        path: str,
        *arguments: str,
        key: tuple[str, ...] | None = None,
        trust: bool = True,
        stdin: bytes = b"",
    ) -> Said:
        url = path if "://" in path else self.service.url + path
        body = self.folder / "body"
        body.unlink(missing_ok=True)
        given = ("--user", f"{self.service.key}:") if key is None else key
        trusted = ("--cacert", str(self.service.certificate)) if trust else ()
        process = await asyncio.create_subprocess_exec(
            self.program, "--disable", "--silent", "--max-time", "60", "--noproxy", "*",
            "--dump-header", "-", "--output", str(body), "--write-out", "%{size_upload}",
            *trusted, *given, *arguments, url,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        printed, _ = await process.communicate(stdin)
        *heads, sent = printed.decode("ascii").split("\r\n\r\n")
        first, _, fields = heads[-1].partition("\r\n") if heads else ("HTTP/1.1 0", "", "")
        assert process.returncode is not None
        return Said(
            process.returncode,
            int(first.split()[1]),
            message_from_string(fields),
            body.read_bytes() if body.exists() else b"",
            int(sent),
        )


@pytest.fixture
def curl(service: Service, tmp_path: Path) -> Curl:
    return Curl(requires.program("curl"), service, tmp_path)


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.jpg"
    path.write_bytes(encoded.jpeg().data)
    return path


@pytest_asyncio.fixture
async def source() -> AsyncIterator[str]:
    """URL of a photograph on a web server."""

    async def picture(_: web.Request) -> web.Response:
        return web.Response(body=encoded.jpeg().data, content_type="image/jpeg")

    async with serving({"/photo.jpg": picture}) as url:
        yield f"{url}/photo.jpg"


async def test_a_key_is_tested_with_basic_or_bearer(curl: Curl) -> None:
    """`curl -u KEY:` and an Authorization header both do."""
    for key in (("-u", f"{curl.service.key}:"), ("-H", f"Authorization: Bearer {curl.service.key}")):
        said = await curl("/1.0/account", key=key)
        assert (said.exit, said.status, said.json["success"]) == (0, 200, True)


async def test_without_a_key_both_ways_are_named(curl: Curl) -> None:
    """The challenge of a 401 tells which ways of authentication there are."""
    for key in ((), ("-u", "wrong:"), ("-H", "Authorization: Bearer wrong")):
        said = await curl("/1.0/account", key=key)
        assert (said.status, said.json["error"]) == (401, "unauthorized")
        challenges = " ".join(said.headers.get_all("WWW-Authenticate", []))
        assert "Basic" in challenges
        assert "Bearer" in challenges


async def test_the_certificate_protects_the_key(curl: Curl) -> None:
    """A client that does not know the certificate sends nothing."""
    said = await curl("/1.0/account", trust=False)
    assert (said.exit, said.body) == (_NOT_TRUSTED, b"")


async def test_plain_http_is_told_what_is_wrong(curl: Curl) -> None:
    """Calls without TLS fail with a reason, not with a redirect, even where curl would follow one."""
    url = f"http://localhost:{curl.service.port}/1.0/account"
    said = await curl(url, "--location")
    assert (said.status, said.json["error"]) == (403, "https_required")
    assert said.headers["Location"] is None
    assert int(said.headers["X-RateLimit-Remaining"]) >= 0


async def test_fetch_answers_json_and_the_result_can_be_downloaded(curl: Curl, source: str) -> None:
    """The default answer names the result, which anybody who knows its URL may download."""
    request = json.dumps({"url": source, "resize": {"width": 48}, "filter": {"sepia": {"value": 50}}})
    said = await curl("/1.0/fetch", "-H", "Content-Type: application/json", "-d", request)
    assert said.status == 200, said.body
    assert said.json["input"]["name"] == "photo.jpg"
    output = said.json["output"]
    assert (output["width"], output["height"], output["format"]) == (48, 32, "jpg")
    download = await curl(output["url"], "--fail", key=())
    assert download.picture.size == (48, 32)
    assert len(download.body) == output["bytes"]


async def test_fetch_takes_no_form_fields(curl: Curl, source: str) -> None:
    """What `curl -d` and `curl -F` send on their own is no JSON."""
    for fields in (("-d", f"url={source}"), ("-F", f"url={source}")):
        said = await curl("/1.0/fetch", *fields)
        assert (said.status, said.json["error"]) == (415, "unsupported_media_type")


async def test_binary_mode_writes_the_picture(curl: Curl, source: str) -> None:
    """With header and mode, the body is the picture and a header the metadata."""
    request = json.dumps({
        "url": source, "resize": {"width": 30}, "output": {"format": "png"}, "response": {"mode": "binary"}
    })  # fmt: skip
    said = await curl(
        "/1.0/fetch", "-H", "Content-Type: application/json", "-H", "X-Svc-Binary: 1", "-d", request
    )
    assert (said.status, said.headers["Content-Type"]) == (200, "image/png")
    assert said.picture.size == (30, 20)
    metadata = json.loads(said.headers["X-Svc-Metadata"])
    assert (metadata["success"], metadata["output"]["bytes"]) == (True, len(said.body))
    assert (await curl(metadata["output"]["url"], key=())).body == said.body


async def test_a_failed_binary_call_writes_nothing(curl: Curl, photo: Path) -> None:
    """With --fail there is no file after a failure; the metadata is in the header all the same."""
    said = await curl(
        "/1.0/upload", "--fail", "-H", "X-Svc-Binary: 1",
        "-F", f"file=@{photo}", "-F", 'data={"resize":{"width":0}}',
    )  # fmt: skip
    assert (said.exit, said.status, said.body) == (_FAILED_BY_STATUS, 422, b"")
    metadata = json.loads(said.headers["X-Svc-Metadata"])
    assert (metadata["success"], metadata["code"]) == (False, 422)
    assert "'width'" in metadata["message"]


async def test_upload_takes_file_and_data_in_either_order(curl: Curl, photo: Path) -> None:
    """A form with the picture and the JSON, whichever part comes first."""
    parts = [("-F", f"file=@{photo}"), ("-F", 'data={"resize":{"width":24}}')]
    for first, second in (parts, reversed(parts)):
        said = await curl("/1.0/upload", *first, *second)
        assert said.status == 200, said.body
        assert (said.json["input"]["name"], said.json["output"]["width"]) == ("photo.jpg", 24)


async def test_upload_from_a_pipe(curl: Curl, photo: Path) -> None:
    """A file of unknown length and name is sent in chunks."""
    said = await curl(
        "/1.0/upload", "-H", "Transfer-Encoding: chunked", "-F", "file=@-", stdin=photo.read_bytes()
    )
    assert said.status == 200, said.body
    assert said.json["input"]["bytes"] == photo.stat().st_size


async def test_a_large_upload_waits_to_be_told_to_continue(curl: Curl, tmp_path: Path) -> None:
    """Bodies above a megabyte come with Expect: 100-continue."""
    large = tmp_path / "large.png"
    large.write_bytes(pillow(photos.mosaic(1200, 900), "PNG", compress_level=1))
    assert large.stat().st_size > 1_100_000
    request = 'data={"resize":{"width":100},"output":{"format":"webp"}}'
    said = await curl(
        "/1.0/upload", "-H", "Expect: 100-Continue", "--expect100-timeout", "30",
        "-F", f"file=@{large}", "-F", request,
    )  # fmt: skip
    assert said.status == 200, said.body
    assert (said.json["output"]["format"], said.json["output"]["width"]) == ("webp", 100)


async def test_a_stranger_does_not_get_to_send_a_body(curl: Curl, tmp_path: Path) -> None:
    """Who waits to be told to continue is refused before the body is sent."""
    large = tmp_path / "large.bin"
    large.write_bytes(bytes(3_000_000))
    said = await curl(
        "/1.0/upload", "-H", "Expect: 100-continue", "--expect100-timeout", "30",
        "-F", f"file=@{large}", key=("-u", "wrong:"),
    )  # fmt: skip
    assert (said.status, said.json["error"], said.sent) == (401, "unauthorized", 0)


async def test_too_large_a_body_is_not_sent(curl: Curl, tmp_path: Path) -> None:
    """Who waits to be told to continue learns the limit before the body is sent."""
    huge = tmp_path / "huge.json"
    huge.write_bytes(b"[" + b" " * 1_500_000 + b"]")
    said = await curl(
        "/1.0/fetch", "-H", "Expect: 100-continue", "--expect100-timeout", "30",
        "-H", "Content-Type: application/json", "--data-binary", f"@{huge}",
    )  # fmt: skip
    assert (said.status, said.json["error"], said.sent) == (413, "body_too_large", 0)
    assert "1,000,000 bytes" in said.json["message"]


async def test_results_can_be_continued_and_are_not_sent_twice(
    curl: Curl, photo: Path, tmp_path: Path
) -> None:
    """Ranges and ETags work as curl uses them."""
    url = (await curl("/1.0/upload", "-F", f"file=@{photo}")).json["output"]["url"]
    whole = await curl(url, "--etag-save", str(tmp_path / "etag"), key=())
    part = await curl(url, "--range", "100-199", key=())
    assert (part.status, part.body) == (206, whole.body[100:200])
    assert part.headers["Content-Range"] == f"bytes 100-199/{len(whole.body)}"
    same = await curl(url, "--etag-compare", str(tmp_path / "etag"), key=())
    assert (same.status, same.body) == (304, b"")
    head = await curl(url, "--head", key=())
    assert (head.status, int(head.headers["Content-Length"])) == (200, len(whole.body))


async def test_a_watermark_is_uploaded_used_and_deleted(curl: Curl, photo: Path, tmp_path: Path) -> None:
    """The whole life of a watermark in a shell."""
    logo = tmp_path / "logo.png"
    logo.write_bytes(encoded.png_alpha().data)
    made = await curl("/1.0/watermarks", "-F", f"file=@{logo}")
    assert made.status == 201, made.body
    id_ = made.json["watermark"]["id"]
    listed = await curl("/1.0/watermarks")
    assert id_ in [watermark["id"] for watermark in listed.json["watermarks"]]
    request = json.dumps({"watermark": {"id": id_, "gravity": "bottom-right", "scale": 0.3}})
    marked = await curl("/1.0/upload", "-F", f"file=@{photo}", "-F", f"data={request}")
    assert marked.status == 200, marked.body
    assert (await curl(f"/1.0/watermarks/{id_}", "-X", "DELETE")).status == 200
    assert (await curl(f"/1.0/watermarks/{id_}")).status == 404


async def test_a_keyfile_is_uploaded_and_deleted(curl: Curl, tmp_path: Path) -> None:
    """A keyfile as it was downloaded, as a JSON body or as a form."""
    keyfile = tmp_path / "key.json"
    keyfile.write_text(json.dumps(KEYFILE))
    for body in (
        ("-H", "Content-Type: application/json", "--data-binary", f"@{keyfile}"),
        ("-F", f"file=@{keyfile}"),
    ):
        made = await curl("/1.0/keyfiles", *body)
        assert made.status == 201, made.body
        assert b"PRIVATE" not in made.body
        deleted = await curl(f"/1.0/keyfiles/{made.json['keyfile']['id']}", "-X", "DELETE")
        assert deleted.status == 200


async def test_a_repeated_call_is_done_once(curl: Curl, photo: Path) -> None:
    """curl's own retries do no harm where an Idempotency-Key comes along."""
    key = ("-H", f"Idempotency-Key: {uuid.uuid4()}")
    first, again = [await curl("/1.0/upload", *key, "-F", f"file=@{photo}") for _ in range(2)]
    assert (first.status, first.body) == (again.status, again.body)
    assert first.json["id"] == again.json["id"]
    other = await curl("/1.0/upload", *key, "-F", f"file=@{photo}", "-F", 'data={"flip":{"vertical":true}}')
    assert (other.status, other.json["error"]) == (409, "idempotency_conflict")


async def test_every_answer_tells_the_rate(curl: Curl) -> None:
    """Errors and unknown paths included, and probes, which are not counted."""
    for path in ("/1.0/account", "/1.0/nothing", "/healthz"):
        said = await curl(path)
        assert said.headers["X-RateLimit-Limit"] == "100000"
        assert (int(said.headers["X-RateLimit-Remaining"]) == 100_000) is (path == "/healthz")
        assert 0 <= int(said.headers["X-RateLimit-Reset"]) <= 900
