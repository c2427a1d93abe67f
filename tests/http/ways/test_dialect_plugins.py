"""A dialect that somebody else wrote reads the query and the headers of requests."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from imgsvc_urls import Signer
from tests.http.service_process import Service, running
from tests.http.ways.conftest import CONFIG, Site, new_account, signer_for
from tests.http.ways.web_origin import Page, WebOrigin
from tests.support import encoded
from tests.support.plugins import install

pytestmark = pytest.mark.asyncio

EXAMPLE = Path(__file__).parents[3] / "examples" / "urls" / "weserv_dialect.py"

MODULE = """
import attrs

from imgsvc_core import Resize, Spec
from imgsvc_urls.dialects import DialectError, ForeignRequest, ForeignUrl
from imgsvc_urls import OriginSource


@attrs.frozen(kw_only=True)
class QueryUrl(ForeignUrl):
    width: int

    def spec(self, info):
        return Spec(resize=Resize(width=self.width))


class Query:
    def __init__(self, secret):
        self.secret = secret

    def parse(self, request):
        if request.header("Authorization") != f"Bearer {self.secret}":
            raise DialectError("The secret is wrong.", status=498)
        asked = dict(request.parameters)
        source = OriginSource(request.header("Host").partition(".")[0], asked["file"])
        factor = 2 if request.header("Sec-CH-DPR") == "2" else 1
        return QueryUrl(source=source, signed=True, width=factor * int(asked["w"]))
"""


@pytest.fixture(scope="session")
def delivering(photos: Path, web: WebOrigin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with the dialect, whose package is on its import path."""
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "imgsvc.toml").write_text(CONFIG)
    install(folder, "query", "query_dialect:Query", MODULE)
    install(folder, "weserv", "weserv_dialect:Weserv", EXAMPLE.read_text(encoding="utf-8"))
    account = new_account(folder / "state")
    settings = {
        "delivery.origins": json.dumps({"photos": f"file://{photos}"}),
        "delivery.dialects": json.dumps(
            {
                "query": {"account": account, "secret": "open"},
                "weserv": {"account": account, "sources": [f"{web.url}/pictures/"]},
            }
        ),
        "fetch.private_allowed": "127.0.0.1",
    }
    with contextlib.ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:  # for its start only: others would not be forked either
            patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
            service = stack.enter_context(running(folder / "state", settings, config=folder / "imgsvc.toml"))
        yield service


@pytest.fixture(scope="session")
def signer(delivering: Service) -> Signer:
    return signer_for(delivering)


PATH = "/query/pictures?w=20&file=photo.jpg"
CLIENT = {"Authorization": "Bearer open", "Host": "photos.example.org"}


async def test_the_query_and_headers_decide(site: Site) -> None:
    reply = await site.get(PATH, **CLIENT)
    assert (reply.status, reply.picture.size[0]) == (200, 20), reply.body
    assert reply.headers["Vary"] == "Authorization, Host, Sec-CH-DPR"
    assert (await site.get("/query/pictures?w=21&file=photo.jpg", **CLIENT)).picture.size[0] == 21
    sharp = await site.get(PATH, **CLIENT, Sec_CH_DPR="2")
    assert sharp.picture.size[0] == 40
    assert sharp.headers["ETag"] != reply.headers["ETag"]
    encoded = await site.get("/query/?w=20&file=deep%2F%C3%BC+%25.png", **CLIENT)
    assert encoded.picture.format == "PNG"


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Authorization": "Bearer shut"}, 498),
        ({"Authorization": ""}, 498),
        ({"Host": "other.example.org"}, 422),
    ],
)
async def test_an_answer_in_memory_is_for_clients_with_the_same_headers(
    site: Site, changed: dict[str, str], status: int
) -> None:
    for _ in range(2):
        assert (await site.get(PATH, **CLIENT)).status == 200
    assert (await site.get(PATH, **CLIENT)).headers["X-Svc-Cache"] == "hit"
    refused = await site.get(PATH, **{**CLIENT, **changed})
    assert refused.status == status, refused.body
    assert (await site.get(PATH, **CLIENT)).status == 200


async def test_the_example_in_the_documentation(site: Site) -> None:
    site.web.pages["/pictures/w.png"] = Page(encoded.jpeg().data, {"Cache-Control": "max-age=60"})
    source = f"{site.web.url}/pictures/w.png"
    for query, size, format in (
        (f"url={source}&w=20", 20, "JPEG"),
        (f"url={source}&w=20&h=10&fit=cover&output=webp&q=50", 20, "WEBP"),
        (f"w=20&h=10&fit=fill&output=png&url={source}", 20, "PNG"),
    ):
        reply = await site.get(f"/weserv/?{query}")
        assert (reply.status, reply.picture.size[0], reply.picture.format) == (200, size, format), reply.body
        assert "Vary" not in reply.headers
    for query, told in (
        ("w=20", "'url' is required"),
        (f"url={source}&w=x", "'w' must be an integer"),
        (f"url={source}&w={'9' * 5000}", "'w' must be an integer"),
        (f"url={source}&w=-5", "'width'"),
        (f"url={source}&w=99999", "'width'"),
        (f"url={source}&fit=nosuch", "'fit' must be one of inside"),
    ):
        reply = await site.get(f"/weserv/?{query}")
        assert (reply.status, told in reply.json["message"]) == (400, True), reply.body
    assert (await site.get("/weserv/?url=https://other.example/a.jpg&w=9")).status == 403
