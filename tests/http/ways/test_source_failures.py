"""The status of a source that fails: that of the service whose URL it is, or as a setting says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
import pyvips

from imgsvc_urls import Signer
from tests.http.service_process import Service, running
from tests.http.ways.conftest import Site, new_account, signer_for
from tests.http.ways.web_origin import Page, WebOrigin
from tests.support import encoded

pytestmark = pytest.mark.asyncio

PICTURE = encoded.jpeg().data
WIDE = pyvips.Image.black(100, 100).pngsave_buffer()
REFUSED = {"Location": "http://127.0.0.1:9/a.jpg"}

# Those of thumbor 7.8 were measured; of imgproxy 4 they are in fetcher/errors.go, of imagor in
# loader/httploader and errors.go, of ipx in src/storage/http.ts.
WHOSE = ("own", "gateway", "imgproxy", "thumbor", "imagor", "ipx")
FAILURES = {
    "missing": (Page(status=404), (404, 404, 404, 404, 404, 404)),
    "gone": (Page(status=410), (404, 404, 410, 404, 410, 410)),
    "forbidden": (Page(status=403), (424, 502, 403, 404, 403, 403)),
    "odd": (Page(status=499), (424, 502, 499, 404, 499, 499)),
    "cdn": (Page(status=522), (424, 502, 502, 404, 522, 522)),
    "failing": (Page(status=500), (424, 502, 502, 404, 500, 500)),
    "busy": (Page(status=503), (424, 502, 502, 404, 503, 503)),
    "slow": (Page(PICTURE, seconds=3), (424, 504, 504, 504, 408, 504)),
    "refused": (Page(b"", REFUSED, 302), (424, 502, 404, 500, 404, 500)),
    "cut": (Page(PICTURE[:99], {"Content-Length": "999"}), (424, 502, 422, 504, 406, 400)),
    "empty": (Page(), (424, 502, 422, 502, 406, 400)),
    "text": (Page(b"no picture"), (424, 502, 422, 400, 406, 400)),
    "large": (Page(PICTURE * 9), (424, 502, 422, 400, 400, 400)),
    "wide": (Page(WIDE), (422, 422, 422, 400, 422, 400)),
}


OURS = WHOSE[:2]
PATIENT, HASTY = 60, 1


@pytest.fixture(scope="module")
def failing(
    request: pytest.FixtureRequest, web: WebOrigin, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, Signer, str]]:
    """A service with statuses of a kind, which waits for a source for some seconds."""
    whose, seconds = request.param
    folder = tmp_path_factory.mktemp("failing")
    dialects = {"imgproxy": {}, "thumbor": {"unsafe": True}, "imagor": {"unsafe": True}, "ipx": {}}
    settings = {
        "delivery.origins": json.dumps({"web": f"{web.url}/"}),
        "delivery.unsigned": new_account(folder / "state"),
        "delivery.dialects": json.dumps(
            {name: {**own, "sources": [f"{web.url}/"]} for name, own in dialects.items()}
        ),
        "delivery.gateway_statuses": whose == "gateway",
        "fetch.private_allowed": "127.0.0.1",
        "fetch.total_seconds": seconds,
        "limits.source_bytes": len(PICTURE) * 8,
        "limits.source_pixels": 96 * 64,
        "cache.stale_seconds": 0,
    }
    with running(folder / "state", settings) as service:
        yield service, signer_for(service), whose


@pytest_asyncio.fixture
async def site(failing: tuple[Service, Signer, str], web: WebOrigin) -> AsyncIterator[Site]:
    service, signer, _ = failing
    async with service.client(key="") as client:
        yield Site(service, client, signer, service.state, web)
    web.pages.clear()
    web.log.clear()


def _urls(site: Site, own: str, path: str) -> dict[str, str]:
    """The URLs of a source by whose they are."""
    return {
        own: site.signer.url(f"web/{path}", resize="20x"),
        "imgproxy": f"/imgproxy/unsafe/w:20/plain/{site.web.url}/{path}",
        "thumbor": f"/thumbor/unsafe/20x0/{site.web.url}/{path}",
        "imagor": f"/imagor/unsafe/20x0/{site.web.url}/{path}",
        "ipx": f"/ipx/w_20/{site.web.url}/{path}",
    }


@pytest.mark.parametrize("failure", [failure for failure in FAILURES if failure != "slow"])
@pytest.mark.parametrize("failing", [(whose, PATIENT) for whose in OURS], indirect=True)
async def test_each_failure_has_the_status_of_the_service_whose_url_it_is(
    site: Site, failing: tuple[Service, Signer, str], failure: str
) -> None:
    await _assert_statuses(site, failing[2], failure)


@pytest.mark.parametrize("failing", [(whose, HASTY) for whose in OURS], indirect=True)
async def test_a_slow_source_has_the_status_of_the_service_whose_url_it_is(
    site: Site, failing: tuple[Service, Signer, str]
) -> None:
    await _assert_statuses(site, failing[2], "slow")


async def _assert_statuses(site: Site, own: str, failure: str) -> None:
    page, found = FAILURES[failure]
    statuses = dict(zip(WHOSE, found, strict=True))
    site.web.pages[f"/{failure}.jpg"] = page
    for whose, url in _urls(site, own, f"{failure}.jpg").items():
        reply = await site.get(url)
        assert reply.status == statuses[whose], (whose, reply.body)
        kept = "public, max-age=60" if failure in ("missing", "gone") else "no-store"
        assert reply.headers["Cache-Control"] == kept


@pytest.mark.parametrize("failing", [(whose, PATIENT) for whose in OURS], indirect=True)
async def test_a_status_of_404_takes_no_picture_along_that_is_only_unreachable(
    site: Site, failing: tuple[Service, Signer, str]
) -> None:
    site.web.pages["/stale.jpg"] = Page(PICTURE, {"Cache-Control": "max-age=0"})
    urls = _urls(site, failing[2], "stale.jpg")
    first = {whose: await site.get(url) for whose, url in urls.items()}
    site.web.pages["/stale.jpg"] = FAILURES["refused"][0]
    for whose, url in urls.items():
        reply = await site.get(url)
        assert (reply.status, reply.headers["X-Svc-Cache"]) == (200, "stale")
        assert reply.body == first[whose].body
