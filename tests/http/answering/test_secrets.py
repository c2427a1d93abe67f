"""What requests may hold as secrets is in no message, log or file, however it is mistyped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs
import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from imgsvc_core.errors import SpecError
from imgsvc_core.limits import Limits
from imgsvc_core.spec.declare import params
from imgsvc_core.spec.store.declarations import PROVIDERS
from imgsvc_http.receiving.processing_request import parse_request
from imgsvc_http.settings import Settings
from imgsvc_http.state import accounts
from imgsvc_http.state.database import Database
from imgsvc_http.state.tables import AccountRow
from tests.http.calls import call
from tests.http.conftest import NOW
from tests.http.service_process import running

CANARY = "canary7canary"
URLS = (
    f"https://user:{CANARY}@",
    f"https:/user:{CANARY}@example.org/",
    f"https//user:{CANARY}@example.org",
    f"user:{CANARY}@example.org",
    f"github:https://user:{CANARY}@example.org",
    f"//user:{CANARY}@example.org",
    f" https://user:{CANARY}@example.org/",
    f"https://us er:{CANARY}@example.org/",
    f"https://user:{CANARY}@ex ample.org/",
    f"ftp://user:{CANARY}@example.org/",
    f"https://user:{CANARY}@example.org:99999/",
    f"https://user:{CANARY}@[::1",
    f"https://user:{CANARY}%zz@example.org/",
    f"https://example.org/?token={CANARY}|",
    f"file:///{CANARY}",
)


def forms(value: str) -> tuple[Any, ...]:
    """A value in types that are not expected in its place."""
    keyfile = {"type": "service_account", "private_key": value}
    return (value, [value], {"a": value}, {"a": [value]}, {"a": {"b": value}}, keyfile, json.dumps(keyfile))


def documents(value: str) -> Iterator[Any]:
    """Requests in which a secret stands where one may stand, or nearby."""
    plain = {"url": "http://127.0.0.1:1/"}
    for form in forms(value):
        yield form
        yield {"url": form}
        yield {**plain, "headers": form}
        yield {**plain, "headers": {"Authorization": form, "Accept": 5}}
        yield {**plain, "webhook": form}
        yield {**plain, "webhook": {"url": form}}
        yield {**plain, "webhook": {"url": "http://127.0.0.1:1/", "delay": form}}
        yield {**plain, "layers": [{"picture": form}]}
        yield {**plain, "layers": [{"picture": {"source": form}}]}
        yield {**plain, "store": form}
        yield {**plain, "store": {"provider": form}}
        for provider, kind in PROVIDERS.items():
            yield from ({**plain, "store": {"provider": provider, name: form}} for name in params(kind))
            yield {**plain, "store": {"provider": provider, value: form}}
            yield {**plain, "store": {"provider": provider, "metadata": {"name": [form]}, "headers": [form]}}


def told(document: Any) -> str:
    """What messages and logs may show of a request."""
    try:
        return repr(parse_request(document, Limits(), fetching=True).webhook)
    except SpecError as error:
        return f"{error} {error.problems!r}"


@pytest.mark.parametrize("url", [*URLS, f"AKIA{CANARY.upper()}", f"{CANARY}/{CANARY}+{CANARY}="])
def test_messages_about_requests_hold_no_secrets(url: str) -> None:
    for document in documents(url):
        assert CANARY not in told(document).lower()


@pytest.mark.asyncio
async def test_answers_logs_and_files_hold_no_secrets(tmp_path: Path) -> None:
    """With a key, so that the answers are kept."""
    chosen = [document for url in URLS for document in documents(url)][::13]
    chosen += [{"url": url} for url in URLS]
    with running(tmp_path / "state", {"fetch.connect_seconds": 1}) as service:

        async def ask(path: str, document: object) -> bytes:
            headers = {"Idempotency-Key": uuid4().hex}
            return (await call(client, "POST", path, json=document, headers=headers)).body

        async with service.client() as client:
            for start in range(0, len(chosen), 10):
                some = chosen[start : start + 10]
                bodies = await asyncio.gather(*(ask("/1.0/fetch", document) for document in some))
                assert not [body for body in bodies if CANARY.encode() in body]
            for form in forms(CANARY):
                assert CANARY.encode() not in await ask("/1.0/keyfiles", form)
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert [path.name for path in files if path.suffix == ".db"]
    assert not [path for path in (*files, tmp_path / "state.log") if CANARY.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    "name", ["server.port", "server.base_url", "database.url", "stores.endpoints", CANARY]
)
@pytest.mark.parametrize(
    "url", [f"aws=http://user:{CANARY}@host/", f"redis://user:{CANARY}@host:x/", f"https://h/?token={CANARY}"]
)
def test_messages_about_settings_hold_no_secrets(name: str, url: str) -> None:
    given = {url: "5"} if name == CANARY else {name: url}
    with pytest.raises(SpecError) as caught:
        Settings.load(None, {}, given)
    assert CANARY not in repr(caught.value.problems)


@pytest.mark.asyncio
async def test_failures_of_statements_do_not_show_their_values(db: Database) -> None:
    account = await accounts.create(db, company=CANARY, plan="p", period="monthly", quota=5, now=NOW)
    again = {**attrs.asdict(account), "company": CANARY}
    with pytest.raises(IntegrityError) as caught:
        await db.writing(lambda connection: connection.execute(insert(AccountRow), again))
    assert CANARY not in str(caught.value)
