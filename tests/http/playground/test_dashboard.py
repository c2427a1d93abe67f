"""The dashboard in a real browser: what its visitor sees of an account, and does with it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.http.playground.conftest import WAIT_MS, Opened, until
from tests.http.service_process import Service
from tests.support import encoded, requires

AXE = Path(__file__).parents[3] / "web" / "node_modules" / "axe-core" / "axe.min.js"

Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def service(notifying_service: Service) -> Service:
    return notifying_service


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An endpoint for webhooks that is gone at the first attempt of each path."""
    seen: set[str] = set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200 if self.path in seen else 410)
            seen.add(self.path)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def open_page(chromium: Any, service: Service) -> Iterator[Open]:
    """Open the dashboard; with a key, it is typed into the dialog."""
    contexts = []

    def open_page(key: str = "", **options: Any) -> Opened:
        chosen = {"viewport": {"width": 1280, "height": 800}, "ignore_https_errors": True, **options}
        context = chromium.new_context(**chosen)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        troubles: list[str] = []
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda line: troubles.append(line.text) if line.type == "error" else None)
        page.goto(f"{service.url}/dashboard")
        if key:
            page.get_by_role("textbox", name="API key").fill(key)
            page.get_by_role("button", name="Use this key").click()
            page.get_by_text("pictures").first.wait_for()
        return Opened(page, troubles)

    yield open_page
    for context in contexts:
        context.close()


def ask(page: Any, service: Service, key: str, document: dict[str, Any], data: bytes | None = None) -> Any:
    """Send an upload, as a program would."""
    picture = encoded.png().data if data is None else data
    file = {"name": "mine.png", "mimeType": "image/png", "buffer": picture}
    return page.request.post(
        f"{service.url}/1.0/upload",
        headers={"Authorization": f"Bearer {key}"},
        multipart={"data": json.dumps(document), "file": file},
    ).json()


def section(page: Any, title: str) -> Any:
    return page.get_by_role("region", name=title)


def test_an_account_is_shown(open_page: Open, service: Service) -> None:
    key = service.new_key("Pictures & Co")
    opened = open_page()
    page = opened.page
    ask(page, service, key, {"resize": {"width": 30}})
    wrong = ask(page, service, key, {"resize": {"width": 0}})
    page.get_by_role("textbox", name="API key").fill(key)
    page.keyboard.press("Enter")
    page.get_by_text("Pictures & Co").wait_for()
    assert section(page, "Usage").get_by_role("meter").get_attribute("aria-valuenow") == "1"
    rows = section(page, "Last requests").locator("tbody tr")
    rows.filter(has_text=wrong["message"]).wait_for()
    done = rows.filter(has_text="mine.png")
    image = done.get_by_role("img", name="mine.png")
    image.wait_for()
    until(page, "document.querySelector('.thumb img')?.naturalWidth === 30")
    assert "png 30 × " in done.inner_text()
    own = section(page, "API keys").locator("tbody tr")
    own.filter(has_text="this key").wait_for()
    assert f"…{key[-4:]}" in own.inner_text()
    assert key not in page.content()
    page.clock.set_fixed_time("2099-01-01T00:00:00Z")
    done.filter(has_text="expired").wait_for()
    assert opened.troubles == []


def test_a_new_request_appears_by_itself(open_page: Open, service: Service) -> None:
    key = service.new_key()
    page = open_page(key).page
    section(page, "Last requests").get_by_text("No request yet").wait_for()
    ask(page, service, key, {"resize": {"width": 20}})
    section(page, "Last requests").get_by_text("mine.png").wait_for()


def test_the_state_of_keys_is_shown(open_page: Open, service: Service) -> None:
    page = open_page().page
    at = "2026-01-01T00:00:00Z"
    usual = {"name": "", "hint": "abcd", "scopes": ["process"], "created_at": at, "calling": False}
    states = {
        "plain": {},
        "this": {"calling": True},
        "rotated": {"previous_until": "2999-01-01T00:00:00Z"},
        "rotated long ago": {"previous_until": at},
        "revoked": {"revoked_at": at, "last_used_at": at},
    }
    found = [{**usual, "id": name, "name": f"{name}:", **state} for name, state in states.items()]
    page.route("**/1.0/keys", lambda route: route.fulfill(json={"keys": found}))
    page.get_by_role("textbox", name="API key").fill(service.key)
    page.keyboard.press("Enter")
    rows = section(page, "API keys").locator("tbody tr")
    rows.nth(4).wait_for()
    names = [text.strip() for text in rows.locator("td:first-child").all_inner_texts()]
    assert names == ["plain:", "this: this key", "rotated: rotated", "rotated long ago:", "revoked: revoked"]
    assert rows.filter(has_text="never").count() == 4


def test_an_answer_that_takes_longer_than_the_interval_is_shown(open_page: Open, service: Service) -> None:
    page = open_page().page
    page.clock.install(time=0)
    held: list[Any] = []
    page.route("**/1.0/account", lambda route: held.append(route))
    page.get_by_role("textbox", name="API key").fill(service.key)
    with page.expect_request("**/1.0/account"):
        page.keyboard.press("Enter")
    page.clock.pause_at(60)
    page.clock.run_for(60_000)
    held.pop(0).continue_()
    section(page, "Usage").get_by_role("meter").wait_for()
    assert held == []


def test_a_failed_webhook_is_sent_again_by_keyboard(open_page: Open, service: Service, endpoint: str) -> None:
    key = service.new_key()
    opened = open_page(key)
    page = opened.page
    id_ = ask(page, service, key, {"webhook": {"url": f"{endpoint}/again"}})["id"]
    row = section(page, "Webhooks").locator("tbody tr").filter(has_text=id_[:8])
    row.get_by_text("it answered 410").wait_for()
    row.get_by_text("failed", exact=True).wait_for()
    row.get_by_role("button", name="Retry").focus()
    page.keyboard.press("Enter")
    row.get_by_text("delivered", exact=True).wait_for()
    assert row.get_by_role("button").count() == 0
    section(page, "Webhooks").get_by_label("Status").select_option("failed")
    section(page, "Webhooks").get_by_text("No failed webhook").wait_for()
    assert opened.troubles == []


def test_only_what_the_key_may_see_is_shown(open_page: Open, service: Service) -> None:
    account = json.loads(service.imgsvc("accounts", "create", "Narrow", "--json"))["id"]
    made = json.loads(service.imgsvc("keys", "create", account, "--scope", "process", "--json"))
    page = open_page(made["secret"]).page
    section(page, "Usage").get_by_role("meter").wait_for()
    for title in ("Last requests", "Webhooks", "API keys"):
        section(page, title).get_by_text("lacks the scope 'account'").wait_for()
        assert section(page, title).get_by_role("table").count() == 0


def test_the_key_stays_in_the_tab_until_it_is_changed(open_page: Open, service: Service) -> None:
    page = open_page().page
    page.get_by_role("textbox", name="API key").fill("isk_wrong")
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="does not know this key").wait_for()
    page.get_by_role("textbox", name="API key").fill(service.key)
    page.keyboard.press("Enter")
    section(page, "Usage").get_by_role("meter").wait_for()
    page.reload()
    section(page, "Usage").get_by_role("meter").wait_for()
    assert page.evaluate("localStorage.length") == 0
    page.get_by_role("button", name="Change key").click()
    page.get_by_role("textbox", name="API key").wait_for()
    assert page.evaluate("sessionStorage.length") == 0


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_everybody_can_use_it(
    width: int, scheme: str, open_page: Open, service: Service, endpoint: str
) -> None:
    if not AXE.exists():
        requires.missing("the packages of web/ are not installed (npm --prefix web ci)")
    key = service.new_key("A company with quite a long name, and branches in many towns")
    opened = open_page(key, viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True)
    page = opened.page
    ask(page, service, key, {"resize": {"width": 30}})
    ask(page, service, key, {"resize": {"width": 0}, "adjust": {"gamma": 1000}})
    ask(page, service, key, {"webhook": {"url": f"{endpoint}/{width}/{scheme}"}})
    section(page, "Webhooks").get_by_role("button", name="Retry").wait_for()
    page.add_script_tag(path=str(AXE))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = page.evaluate("axe.run().then(result => result.violations)")
    assert not found, json.dumps([(item["id"], item["nodes"][0]["html"]) for item in found], indent=1)
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == (scheme == "dark")
    assert opened.troubles == []
