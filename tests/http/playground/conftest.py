"""A playground of one's own in a real browser."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import pytest

from tests.support import browser, forked_services

WAIT_MS = 120_000  # machines that run tests may be busy
VIEWPORT = {"width": 1280, "height": 800}
LOADED = """[...document.querySelectorAll(".canvas img")].every(one => one.complete && one.naturalWidth)"""


@attrs.frozen
class Opened:
    """A page of the playground, and what went wrong in it."""

    page: Any
    troubles: list[str]


Open = Callable[..., Opened]


def until(page: Any, condition: str) -> None:
    """Wait until an expression is true in a page; the page forbids what Playwright's own waiting does."""
    deadline = time.monotonic() + WAIT_MS / 1000
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, condition
        page.wait_for_timeout(50)


@pytest.fixture(scope="session")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a local playground, with its key."""
    log = tmp_path_factory.mktemp("playground") / "log"
    process = forked_services.start(["playground", "--no-browser"], log)
    try:
        yield process.stdout.readline().removeprefix("Playground: ").strip()
        process.terminate()
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def browser_and_loop() -> Iterator[tuple[Any, asyncio.AbstractEventLoop]]:
    """A browser, and the event loop that Playwright leaves running, beside which no other one can run."""
    with browser.chromium() as opened:
        loop = asyncio.get_running_loop()
        yield opened, loop
        asyncio._set_running_loop(loop)


@pytest.fixture
def chromium(browser_and_loop: tuple[Any, asyncio.AbstractEventLoop]) -> Iterator[Any]:
    """The browser of all tests; its event loop runs during those only that use it."""
    opened, loop = browser_and_loop
    asyncio._set_running_loop(loop)
    yield opened
    asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def idle_pages() -> list[Any]:
    """Pages that tests have left, in which a page is loaded in half the time that a new one takes."""
    return []


@pytest.fixture
def open_page(chromium: Any, playground: str, idle_pages: list[Any]) -> Iterator[Open]:
    """Open the playground with a request in its address; nothing may go wrong that a test does not expect.

    Tests that listen to a page, or leave more in it than routes, ask for one of their own. A page is
    ready when it shows the pixels of both pictures, and asks for no others.
    """
    contexts: list[Any] = []
    pages: list[tuple[Any, Mapping[str, Callable[[Any], None]]]] = []

    def open_page(
        fragment: str = "",
        *,
        ready: bool = True,
        address: str = "",
        own: bool = False,
        viewport: Mapping[str, int] = VIEWPORT,
        **options: Any,
    ) -> Opened:
        if own or options:
            contexts.append(chromium.new_context(**options))
            page = new_page(contexts[-1])
        else:
            page = idle_pages.pop() if idle_pages else new_page(chromium.new_context())
        troubles: list[str] = []
        listeners = {
            "pageerror": lambda error: troubles.append(str(error)),
            "console": lambda line: troubles.append(line.text) if line.type == "error" else None,
        }
        for event, listener in listeners.items():
            page.on(event, listener)
        if page.context not in contexts:
            pages.append((page, listeners))
        page.set_viewport_size(viewport)
        page.goto((address or playground) + (f"&{fragment}" if fragment else ""))
        if ready:
            page.get_by_alt_text("Result").wait_for()
            page.get_by_alt_text("Original").wait_for()
            page.locator(".stage[aria-busy=false]").wait_for()
            until(page, LOADED)
        return Opened(page, troubles)

    yield open_page
    for context in contexts:
        context.close()
    for page, listeners in pages:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        page.unroute_all(behavior="ignoreErrors")
        page.mouse.move(0, 0)
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
        page.goto("about:blank")
        idle_pages.append(page)


def new_page(context: Any) -> Any:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    return page
