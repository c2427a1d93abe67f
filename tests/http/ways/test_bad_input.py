"""URLs that are wrong, forged, cut, replayed or expired: a clear error each, and nothing is made."""

from __future__ import annotations

import asyncio
import json
import time
from urllib.parse import quote

import pytest

from imgsvc_urls import UNSIGNED, Signer, sign
from tests.http.calls import Reply, assert_failure, upload
from tests.http.ways.conftest import Site, signer_for
from tests.http.ways.web_origin import Page
from tests.support import encoded

pytestmark = pytest.mark.asyncio


def _signed(signer: Signer, text: str) -> str:
    """The URL of a path that no signer would write."""
    assert signer.secret is not None
    return f"/1.0/image/{signer.key_id}.{sign(signer.secret, text)}{text}"


async def _refused(site: Site, url: str, status: int, slug: str, *words: str) -> Reply:
    used = await site.used()
    reply = await site.get(url)
    assert_failure(reply, status, slug, *words)
    assert reply.headers["Cache-Control"] == ("public, max-age=60" if status == 404 else "no-store")
    assert reply.headers["Access-Control-Allow-Origin"] == "*"
    assert await site.used() == used
    return reply


async def test_forged_and_cut_signatures(site: Site) -> None:
    url = site.signer.url("photos/photo.jpg", resize="20x")
    head, _, rest = url.removeprefix("/1.0/image/").partition("/")
    key_id, _, signature = head.partition(".")
    for changed in (
        f"{head}/{rest.replace('20x', '21x')}",
        f"{head}/{rest}?x=1",
        f"{head}/{rest}/",
        f"{head}//{rest}",
        f"{key_id}.{signature[:-1]}A/{rest}"
        if not signature.endswith("A")
        else f"{key_id}.{'A' * 43}/{rest}",
        f"{key_id}.{signature[:-1]}/{rest}",
        f"{key_id}.{signature}%3D/{rest}",
        f"{key_id}%2E{signature}/{rest}",
        f"{key_id}%252E{signature}/{rest}",
        f"{head}/{rest.replace('photos/', 'photos%2F')}",
        f"{head}/{rest.replace('photos/', 'photos%252F')}",
        f"{key_id.upper()}x.{signature}/{rest}",
        f"{signature}/{rest}",
        f"{UNSIGNED}/{rest}",
        rest,
        "",
        "%00",
    ):
        await _refused(site, f"/1.0/image/{changed}", 403, "invalid_signature")


async def test_a_signature_is_good_for_one_path_only(site: Site) -> None:
    first, second = (site.signer.url("photos/photo.jpg", resize=size) for size in ("20x", "21x"))
    replayed = f"{first.partition('/resize')[0]}/resize{second.partition('/resize')[2]}"
    await _refused(site, replayed, 403, "invalid_signature", "sign the URL again")


async def test_keys_are_refused_as_soon_as_they_are_revoked(site: Site) -> None:
    """Also for what is answered from memory, as a URL that is asked for all the time."""
    signer = signer_for(site.service)
    url = signer.url("photos/photo.jpg", resize="20x")
    etag = (await site.get(url)).headers["ETag"]
    revoking = asyncio.create_task(
        asyncio.to_thread(site.service.imgsvc, "signing-keys", "revoke", str(signer.key_id))
    )
    while not revoking.done():
        reply = await site.get(url, If_None_Match=etag)
        assert reply.status in (304, 403)
    await revoking
    for known in ({"If_None_Match": etag}, {}):
        reply = await site.get(url, **known)
        assert_failure(reply, 403, "invalid_signature", f"There is no signing key '{signer.key_id}'")
    assert (await site.picture("photos/photo.jpg", resize="20x")).status == 200


async def test_a_key_of_another_account_counts_there(site: Site) -> None:
    account = json.loads(site.service.imgsvc("accounts", "create", "Poor", "--quota", "1", "--json"))["id"]
    key = json.loads(site.service.imgsvc("signing-keys", "create", account, "--json"))
    poor = Signer("", key["id"], key["secret"])
    used = await site.used()
    assert (await site.get(poor.url("photos/photo.jpg", resize="50x"))).status == 200
    reply = await site.get(poor.url("photos/photo.jpg", resize="51x"))
    assert_failure(reply, 402, "quota_exceeded", "quota of 1 images is used up")
    assert (await site.get(poor.url("photos/photo.jpg", resize="50x"))).headers["X-Svc-Cache"] == "hit"
    assert await site.used() == used


async def test_expired_urls(site: Site) -> None:
    url = site.signer.url("photos/photo.jpg", resize="20x", expires=int(time.time()) - 1)
    await _refused(site, url, 410, "url_expired", "ask for a new one")


@pytest.mark.parametrize(
    ("text", "path", "told"),
    [
        ("/sepia:101/photos/photo.jpg", "filter.sepia.value",
         "Sepia 'value' parameter must be float within 0 to 100 range"),
        ("/sepia:5/sepia:6/photos/photo.jpg", "sepia", "must be given once"),
        ("/sepiaa:5/photos/photo.jpg", "sepiaa", "There is no option 'sepiaa'; did you mean 'sepia'?"),
        ("/dpr:6/photos/photo.jpg", "dpr", "URL 'dpr' parameter must be float within 0.1 to 5 range"),
        ("/resize:axb/photos/photo.jpg", "resize", "must be a size such as 800x600"),
        ("/preset:nothing/photos/photo.jpg", "preset", "There is no preset 'nothing'; known are auto, card"),
        ("/preset:card/preset:card/photos/photo.jpg", "preset", "must be given once"),
        ("/resize%253A20x/photos/photo.jpg", "", "must be percent-encoded once"),
        ("/watermark:unknown/photos/photo.jpg", "watermark.id", "must be the id of an uploaded watermark"),
        ("/nowhere/photo.jpg", "source", "There is no origin 'nowhere'; known: archive, away, photos, web"),
        ("/photos/../secret.jpg", "source", "without '.', '..'"),
        ("/photos/%2e%2e/secret.jpg", "source", "without '.', '..'"),
        ("/photos/%252e%252e/secret.jpg", "source", "without '.', '..'"),
        ("/photos/..%2Fsecret.jpg", "source", "must have plain slashes below the origin"),
        ("/photos/..%252Fsecret.jpg", "source", "without '.', '..'"),
        ("/photos/..%5Csecret.jpg", "source", "backslashes"),
        ("/photos/", "source", "must be a path below the origin 'photos'"),
        ("/photos//../secret.jpg", "source", "without '.', '..'"),
        ("/photos/a%00.jpg", "source", "control characters"),
        ("/photos/a%0D%0A.jpg", "source", "control characters"),
        ("/filename:a%0Ab/photos/photo.jpg", "filename", "must be file name"),
        ("/plain/ftp%3A%2F%2Fexample.org%2Fa.jpg", "url", "must be a URL that starts with http:// or https://"),
        ("/plain/file%3A%2F%2F%2Fetc%2Fpasswd", "url", "must be a URL that starts with http:// or https://"),
        ("/plain/s3%3A%2F%2Fbucket%2Fa.jpg", "url", "must be a URL that starts with http:// or https://"),
        ("/plain/https%253A%252F%252Fexample.org%252Fa.jpg", "source", "must be a URL such as https://"),
        ("/b64/%%%", "", "must be percent-encoded"),
        ("/b64/abc", "source", "must be base64url"),
        ("/photos/photo.jpg?width=20", "", "must be percent-encoded"),
    ],
)  # fmt: skip
async def test_wrong_urls_are_told_as_wrong_requests_are(site: Site, text: str, path: str, told: str) -> None:
    reply = await _refused(site, _signed(site.signer, text), 422, "invalid_parameter", told)
    assert path in [problem["path"] for problem in reply.json["errors"]]


async def test_all_problems_are_told_at_once(site: Site) -> None:
    reply = await site.get(_signed(site.signer, "/sepia:101/quality:0/photos/photo.jpg"))
    assert [problem["path"] for problem in reply.json["errors"]] == ["filter.sepia.value", "output.quality"]


@pytest.mark.parametrize(
    ("source", "status", "slug", "told"),
    [
        ("photos/nothing.jpg", 404, "source_unreachable", "Source 'photos/nothing.jpg' does not exist."),
        ("photos/deep", 404, "source_unreachable", "does not exist"),
        pytest.param(
            f"photos/{'a' * 300}.jpg", 404, "source_unreachable", "does not exist", id="a long name"
        ),
        ("photos/photo.jpg/deeper.jpg", 404, "source_unreachable", "does not exist"),
        ("photos/link.jpg", 404, "source_unreachable", "does not exist"),
        ("photos/loop.jpg", 404, "source_unreachable", "Source 'photos/loop.jpg' does not exist."),
        ("archive/nothing.jpg", 404, "source_unreachable", "Source 'archive/nothing.jpg' does not exist."),
        ("web/nothing.jpg", 404, "source_unreachable", "Source 'web/nothing.jpg' answered with status 404"),
        ("web/gone.jpg", 404, "source_unreachable", "Source 'web/gone.jpg' answered with status 410"),
        ("web/failing.jpg", 424, "source_unreachable", "Source 'web/failing.jpg' answered with status 500"),
        ("web/empty.jpg", 424, "empty_source", "Source 'web/empty.jpg' is empty"),
        ("web/lost.jpg", 424, "source_unreachable", "Source 'web/lost.jpg' redirects to something"),
        ("away/photo.jpg", 424, "source_unreachable", "Source 'away/photo.jpg' cannot be fetched: it cannot"),
        ("https://127.0.0.2/a.jpg", 424, "source_unreachable", "is not a public address"),
        ("http://[::1]/a.jpg", 424, "source_unreachable", "is not a public address"),
        ("http://169.254.169.254/latest", 424, "source_unreachable", "is not a public address"),
        ("photos/broken.jpg", 424, "corrupt_image", ""),
        ("photos/empty.jpg", 424, "empty_source", "is empty"),
        ("photos/text.jpg", 424, "unsupported_format", ""),
    ],
)
async def test_sources_that_cannot_be_used(
    site: Site, source: str, status: int, slug: str, told: str
) -> None:
    site.web.pages["/pictures/gone.jpg"] = Page(status=410)
    site.web.pages["/pictures/failing.jpg"] = Page(status=500)
    site.web.pages["/pictures/empty.jpg"] = Page()
    site.web.pages["/pictures/lost.jpg"] = Page(status=302, headers={"Location": "ftp://x/"})
    await _refused(site, site.signer.url(source, resize="20x"), status, slug, told)


async def test_a_redirect_cannot_lead_to_a_private_address(site: Site) -> None:
    site.web.pages["/pictures/moved.jpg"] = Page(status=302, headers={"Location": "http://127.0.0.3/a.jpg"})
    await _refused(
        site, site.signer.url("web/moved.jpg"), 424, "source_unreachable", "'127.0.0.3' is not a public"
    )


async def test_unsigned_urls_are_refused_unless_somebody_pays_for_them(site: Site) -> None:
    for text in ("/photos/photo.jpg", "/preset:card/photos/photo.jpg"):
        await _refused(site, f"/1.0/image/unsigned{text}", 403, "invalid_signature", "must be signed")


async def test_other_methods_are_refused(site: Site) -> None:
    url = site.signer.url("photos/photo.jpg", resize="20x")
    async with site.service.client() as client, client.post(url) as reply:
        assert reply.status == 405
        assert {"GET", "HEAD", "OPTIONS"} <= set(reply.headers["Allow"].replace(" ", "").split(","))


async def test_an_api_key_is_no_signature(site: Site) -> None:
    async with site.service.client() as client, client.get("/1.0/image/unsigned/photos/photo.jpg") as reply:
        assert reply.status == 403


async def test_a_watermark_of_another_account_is_unknown(site: Site) -> None:
    async with site.service.client(key=site.service.new_key()) as other:
        id_ = (await upload(other, encoded.png().data, path="/1.0/watermarks")).json["watermark"]["id"]
    url = _signed(site.signer, f"/watermark:{quote(id_)}/photos/photo.jpg")
    await _refused(site, url, 422, "invalid_parameter", "must be the id of an uploaded watermark")
