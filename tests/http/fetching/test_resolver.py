"""Host names whose lookups hang keep nobody else from theirs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)

# The system's function, slow for some names; it tells of each call.
SLOW_LOOKUPS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*lookup)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *name, const char *port, const struct addrinfo *hints, struct addrinfo **found) {
    if (name && !strncmp(name, "slow", 4)) {
        dprintf(2, "%s\\n", name);
        sleep(atoi(getenv("LOOKUP_SECONDS")));
        return EAI_AGAIN;
    }
    return ((lookup) dlsym(RTLD_NEXT, "getaddrinfo"))(name, port, hints, found);
}
"""

FETCH = """
import asyncio, json, sys, tempfile, time
from pathlib import Path
import uvloop
from imgsvc_core.errors import ImgsvcError
from imgsvc_http.fetching.fetcher import Fetcher
from imgsvc_http.settings import FetchSettings, SocialSettings
from imgsvc_http.storage.source_files import SourceFile
from tests.http.fetching.test_fetcher import PICTURE, answering
from tests.http.sources import serving

async def fetch(fetcher, url, account):
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = SourceFile(Path(folder) / "source")
            fetched = await fetcher.fetch(url, {}, lambda _: file, 10**6, account=account)
            outcome = "fetched" if fetched.path.read_bytes() == PICTURE else "broken"
    except ImgsvcError as error:
        outcome = str(error)
    return outcome, time.monotonic() - began

async def main(names, wait, account):
    fetcher = Fetcher(FetchSettings(private_allowed=("localhost",), total_seconds=8), SocialSettings())
    async with serving({"/p": answering()}) as url:
        local = url.replace("127.0.0.1", "localhost") + "/p"
        slow = [asyncio.create_task(fetch(fetcher, f"http://{name}/p", "slow")) for name in names]
        await asyncio.sleep(0.5)
        outcomes = [await fetch(fetcher, local, account)]
        if wait:
            outcomes += await asyncio.gather(*slow)
            outcomes.append(await fetch(fetcher, local, account))
        print(json.dumps(outcomes))
    await fetcher.close()

uvloop.run(main(*map(json.loads, sys.argv[1:])))
"""


@pytest.fixture(scope="session")
def slow_lookups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that makes lookups of names that begin with ``slow`` slow."""
    folder = tmp_path_factory.mktemp("lookups")
    (folder / "slow.c").write_text(SLOW_LOOKUPS)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", "slow.so", "slow.c", "-ldl"], cwd=folder, check=True, timeout=60
    )
    return folder / "slow.so"


def fetched(
    library: Path, names: list[str], *, seconds: int, wait: bool, account: str = "slow"
) -> tuple[list[Any], list[str]]:
    """What fetching from loopback while names are looked up brought and took; and the slow lookups.

    The names are looked up for the account ``slow``, loopback for any. With ``wait``, then what the names
    brought, and loopback again.
    """
    environment = os.environ | {"LD_PRELOAD": str(library), "LOOKUP_SECONDS": str(seconds)}
    done = subprocess.run(
        [sys.executable, "-c", FETCH, json.dumps(names), json.dumps(wait), json.dumps(account)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environment,
    )
    lookups = [line for line in done.stderr.splitlines() if line.startswith("slow")]
    assert done.stderr.splitlines() == lookups
    return json.loads(done.stdout), lookups


def test_slow_names_keep_nobody_from_others(slow_lookups: Path) -> None:
    names = [f"slow{number}.test" for number in range(100)]
    [(outcome, seconds)], lookups = fetched(slow_lookups, names, seconds=600, wait=False)
    assert outcome == "fetched"
    assert seconds < 4
    assert sorted(lookups) == sorted(names)


def test_a_name_is_looked_up_once_for_all_who_ask_at_the_same_time(slow_lookups: Path) -> None:
    outcomes, lookups = fetched(slow_lookups, ["slow.test"] * 50, seconds=2, wait=True)
    assert lookups == ["slow.test"]
    assert {outcome for outcome, _ in outcomes[1:-1]} == {
        "Source 'http://slow.test/p' cannot be fetched: its host name is unknown."
    }


def test_lookups_without_number_are_not_blamed_on_the_source(slow_lookups: Path) -> None:
    names = [f"slow{number}.test" for number in range(256)]
    outcomes, lookups = fetched(slow_lookups, names, seconds=5, wait=True)
    assert len(lookups) == 128  # an account has half of all 256
    outcome, seconds = outcomes[0]
    assert outcome.endswith(
        "cannot be fetched: the service is looking up too many host names already; try again, or upload the "
        "image."
    )
    assert seconds < 4
    assert outcomes[-1][0] == "fetched"


def test_slow_names_of_one_account_keep_no_other_from_any(slow_lookups: Path) -> None:
    names = [f"slow{number}.test" for number in range(300)]
    [(outcome, _)], lookups = fetched(slow_lookups, names, seconds=600, wait=False, account="other")
    assert outcome == "fetched"
    assert len(lookups) == 128
