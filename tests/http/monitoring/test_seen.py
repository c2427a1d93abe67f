"""A running service writes a line for each request, and tells its metrics."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import pytest
from prometheus_client.parser import text_string_to_metric_families

from imgsvc_http.answering.errors import KINDS
from imgsvc_http.monitoring.metrics import METRICS
from imgsvc_http.monitoring.phases import PHASES
from imgsvc_http.state import accounts
from imgsvc_http.state.database import Database
from tests.http.calls import call, upload
from tests.http.conftest import NOW
from tests.http.service_process import Service, running
from tests.http.webhooks.test_records import Row, write
from tests.support import encoded
from tests.support.servers import free_port

_SECONDS = 60
_SECRET = "isk_nobodyshallseethis"


@attrs.frozen
class Seen:
    """A service, the port of its metrics, and the file of its log."""

    service: Service
    port: int
    log: Path

    async def metrics(self) -> dict[tuple[str, ...], float]:
        """The values by the names and the values of their labels."""
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"http://127.0.0.1:{self.port}/metrics") as response,
        ):
            assert response.status == 200
            families = list(text_string_to_metric_families(await response.text()))
        return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}

    def line(self, id_: str) -> dict[str, Any]:
        """The line of a request."""
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            for text in self.log.read_text().rpartition("\n")[0].splitlines():
                if id_ in text and text.startswith("{"):
                    return dict(json.loads(text))
            time.sleep(0.02)
        raise AssertionError(f"{id_} is not in {self.log.read_text()}")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    folder = tmp_path_factory.mktemp("seen")
    with free_port() as port:
        settings = {
            "monitoring.metrics_port": port,
            "monitoring.access_log": "json",
            "server.trusted_proxies": "127.0.0.1",
            "accounts.quota": 3,
        }
        with running(folder / "state", settings) as service:
            yield Seen(service, port, folder / "state.log")


@pytest.mark.asyncio
async def test_a_picture_is_a_line_with_its_phases_and_counts_in_the_metrics(seen: Seen) -> None:
    before = await seen.metrics()
    picture = encoded.png().data
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
    async with seen.service.client() as client:
        reply = await upload(client, picture, {"resize": {"width": 8}}, headers=headers)
    line, after = seen.line(reply.json["id"]), await seen.metrics()
    assert {name: line[name] for name in ("client", "method", "endpoint", "status", "error")} == {
        "client": "203.0.113.7",
        "method": "POST",
        "endpoint": "/1.0/upload",
        "status": 200,
        "error": None,
    }
    assert line["received"] > len(picture)
    assert line["sent"] > len(reply.body)
    assert line["account"] in seen.service.imgsvc("accounts", "list", "--json")
    assert list(line["phases"]) == [name for name in PHASES if name != "fetch"]
    assert sum(line["phases"].values()) <= line["ms"] + 1

    def grown(*key: str) -> float:
        return after[key] - before.get(key, 0)

    assert grown("imgsvc_requests_total", "/1.0/upload", "200") == 1
    assert grown("imgsvc_request_seconds_count", "/1.0/upload") == 1
    assert grown("imgsvc_sent_bytes_total") == line["sent"]
    assert grown("imgsvc_received_bytes_total") == line["received"]
    for name in line["phases"]:
        assert grown("imgsvc_phase_seconds_count", name) == 1


@pytest.mark.asyncio
async def test_no_secret_and_nothing_that_a_client_wrote_is_in_a_line(seen: Seen) -> None:
    async with seen.service.client(key=_SECRET) as client:
        await call(client, "GET", f"/1.0/webhooks?status={_SECRET}")
        await call(client, "GET", f"/1.0/images/{_SECRET}")
        last = await call(client, "POST", f"/{_SECRET}", headers={"Idempotency-Key": _SECRET})
    line = seen.line(last.headers["X-Request-Id"])
    assert (line["endpoint"], line["status"], line["error"]) == ("other", 401, "unauthorized")
    assert _SECRET not in seen.log.read_text()


@pytest.mark.asyncio
async def test_no_name_of_a_file_is_in_the_log(seen: Seen) -> None:
    """Neither one that cannot be decoded, nor one that continues in a further line like that of a request."""
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    names = (f"%ff{_SECRET}.png", f"%ff\r\n 2026-11-23T00:00:00.000Z POST {_SECRET}")
    async with seen.service.client() as client:
        for name in names:
            head = f"--x\r\nContent-Disposition: form-data; name=\"file\"; filename*=UTF-8''{name}\r\n\r\n"
            body = head.encode() + b"nothing" + b"\r\n--x--\r\n"
            last = await call(client, "POST", "/1.0/upload", data=body, headers=headers)
    seen.line(last.headers["X-Request-Id"])
    assert _SECRET not in seen.log.read_text()


@pytest.mark.asyncio
async def test_requests_that_are_no_http_have_a_line(seen: Seen) -> None:
    reader, writer = await asyncio.open_connection(
        "localhost", seen.service.port, ssl=seen.service.tls, server_hostname="localhost"
    )
    writer.write(b"GET /1.0/account HTTP/1.1\r\nHost : x y\r\n\r\n")
    answer = (await reader.read()).decode()
    writer.close()
    id_ = next(line.split(": ")[1] for line in answer.splitlines() if line.startswith("X-Request-Id"))
    line = seen.line(id_)
    assert (line["endpoint"], line["status"], line["error"]) == ("other", 400, "invalid_http")


@pytest.mark.asyncio
async def test_a_client_that_leaves_has_a_line(seen: Seen) -> None:
    before = (await seen.metrics()).get(("imgsvc_requests_total", "/1.0/upload", "499"), 0)
    async with seen.service.client() as client:
        is_read = asyncio.Event()

        async def body() -> Any:
            is_read.set()
            yield b"--x\r\n"
            await asyncio.Event().wait()

        async def ask() -> None:
            headers = {"Content-Type": "multipart/form-data; boundary=x"}
            await client.post("/1.0/upload", data=body(), headers=headers, expect100=True)

        leaving = asyncio.create_task(ask())
        await asyncio.wait_for(is_read.wait(), _SECONDS)
        leaving.cancel()
    deadline = time.monotonic() + _SECONDS
    while (await seen.metrics()).get(("imgsvc_requests_total", "/1.0/upload", "499"), 0) != before + 1:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


@pytest.mark.asyncio
async def test_refusals_of_the_quota_are_counted(seen: Seen) -> None:
    async with seen.service.client() as client:
        for _ in range(4):
            reply = await upload(client, encoded.png().data)
    assert reply.status == 402
    assert (await seen.metrics())["imgsvc_errors_total", "quota_exceeded"] >= 1
    assert seen.line(reply.json["id"])["error"] == "quota_exceeded"


@pytest.mark.asyncio
async def test_state_is_told(seen: Seen) -> None:
    found = await seen.metrics()
    for class_ in ("call", "webhook"):
        assert found["imgsvc_queue_requests", class_] == 0
        assert found["imgsvc_queue_oldest_seconds", class_] == 0
    assert found["imgsvc_workers_busy",] == 0
    assert 0 < found["imgsvc_state_disk_free_bytes",] <= found["imgsvc_state_disk_bytes",]
    for status in ("created", "scheduled", "dispatched", "delivered", "failed"):
        assert found["imgsvc_webhooks", status] == 0


@pytest.mark.asyncio
async def test_counts_begin_at_zero(seen: Seen) -> None:
    """Prometheus sees no increase in what was not there before: the first error would alert nobody."""
    found = await seen.metrics()
    errors = {name[1] for name in found if name[0] == "imgsvc_errors_total"}
    assert {*KINDS, "machine_failed", "source_unreachable", "url_expired"} <= errors
    ends = {name[1] for name in found if name[0] == "imgsvc_worker_ends_total"}
    assert ends == {"crashed", "killed", "timeout", "cancelled", "replaced"}


@pytest.mark.asyncio
async def test_webhooks_that_are_settled_have_no_age(seen: Seen) -> None:
    async with await Database.open(f"sqlite:///{next(seen.service.state.glob('*.db'))}") as db:
        (account,) = await accounts.list_all(db)
        await write(db, account, [Row(status, status, NOW) for status in ("created", "delivered", "failed")])
    found = await seen.metrics()
    assert found["imgsvc_webhooks", "failed"] == 1
    assert [key[1] for key in found if key[0] == "imgsvc_webhook_oldest_seconds"] == ["created"]


@pytest.mark.asyncio
async def test_every_metric_is_declared(seen: Seen) -> None:
    async with (
        aiohttp.ClientSession() as client,
        client.get(f"http://127.0.0.1:{seen.port}/metrics") as response,
    ):
        found = text_string_to_metric_families(await response.text())
        families = [family for family in found if not family.name.endswith("_created")]
    declared = {item.name.removesuffix("_total"): item for item in METRICS}
    assert {family.name for family in families} == set(declared)
    for family in families:
        assert family.documentation == declared[family.name].doc
        assert family.type == declared[family.name].kind
        labels = {name for s in family.samples for name in s.labels} - {"le"}
        assert labels <= set(declared[family.name].labels)


@pytest.mark.asyncio
async def test_pictures_of_webhooks_count_as_those_of_calls(seen: Seen) -> None:
    (account,) = json.loads(seen.service.imgsvc("accounts", "list", "--json"))
    seen.service.imgsvc("accounts", "quota", account["id"], "100")
    before = await seen.metrics()
    async with seen.service.client() as client:
        for data in (encoded.png().data, b"no picture"):
            hook = {"webhook": {"url": "https://127.0.0.1/"}}
            assert (await upload(client, data, hook)).status == 202
    for key in (("imgsvc_phase_seconds_count", "decode"), ("imgsvc_errors_total", "unsupported_format")):
        async with asyncio.timeout(_SECONDS):
            while (await seen.metrics())[key] != before[key] + 1:
                await asyncio.sleep(0.05)


def test_the_page_has_every_metric() -> None:
    docs = Path(__file__).parents[3] / "docs"
    sys.path.insert(0, str(docs / "_ext"))
    table = importlib.import_module("tables").metrics()
    assert all(f"| `{item.name}` | {item.kind} |" in table for item in METRICS)
    page = (docs / "monitoring.md").read_text(encoding="utf-8")
    assert "<!-- table: metrics -->" in (docs / "reference/service.md").read_text(encoding="utf-8")
    assert set(re.findall(r"imgsvc_\w+", page)) <= {item.name for item in METRICS}
