"""Host names whose lookups hang keep nobody else from theirs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)

# The system's function. It notes lookups of some names in a file, and lets them hang until another exists.
SLOW_LOOKUPS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*lookup)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *name, const char *port, const struct addrinfo *hints, struct addrinfo **found) {
    if (name && !strncmp(name, "slow", 4)) {
        dprintf(open(getenv("LOOKUPS"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), "%s\\n", name);
        while (access(getenv("LOOKUPS_END"), F_OK)) usleep(10000);
        return EAI_AGAIN;
    }
    return ((lookup) dlsym(RTLD_NEXT, "getaddrinfo"))(name, port, hints, found);
}
"""

FETCH = """
import asyncio, json, os, sys, tempfile
from pathlib import Path
import uvloop
from aiohttp import web
from imgsvc_core.errors import ImgsvcError
from imgsvc_http.fetching.fetcher import Fetcher
from imgsvc_http.settings import FetchSettings, SocialSettings
from imgsvc_http.storage.source_files import SourceFile
from tests.http.sources import serving

PICTURE = bytes(range(256)) * 400

async def answer(request):
    return web.Response(body=PICTURE)

async def fetch(fetcher, url, account):
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = SourceFile(Path(folder) / "source")
            fetched = await fetcher.fetch(url, {}, lambda _: file, 10**6, account=account)
            outcome = "fetched" if fetched.path.read_bytes() == PICTURE else "broken"
    except ImgsvcError as error:
        outcome = str(error)
    return outcome

async def main(names, begun, wait, account):
    fetcher = Fetcher(FetchSettings(private_allowed=("localhost",), total_seconds=60), SocialSettings())
    async with serving({"/p": answer}) as url:
        local = url.replace("127.0.0.1", "localhost") + "/p"
        slow = [asyncio.create_task(fetch(fetcher, f"http://{name}/p", "slow")) for name in names]
        noted = Path(os.environ["LOOKUPS"])
        while not noted.exists() or len(noted.read_text().splitlines()) < begun:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)  # in which more might begin
        outcomes = [await fetch(fetcher, local, account)]
        if wait:
            Path(os.environ["LOOKUPS_END"]).touch()
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
    library: Path, folder: Path, names: list[str], *, begun: int, wait: bool, account: str = "slow"
) -> tuple[list[str], list[str]]:
    """What fetching from loopback brought while names are looked up; and these lookups.

    The names are looked up for the account ``slow``, loopback for any. With ``wait`` the lookups end then:
    what the names brought, and loopback again. ``begun`` is the number of lookups that begin.
    """
    noted = folder / "lookups"
    paths = {"LD_PRELOAD": str(library), "LOOKUPS": str(noted), "LOOKUPS_END": str(folder / "end")}
    arguments = [json.dumps(value) for value in (names, begun, wait, account)]
    done = subprocess.run(
        [sys.executable, "-c", FETCH, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=os.environ | paths,
    )
    assert done.stderr == ""
    return json.loads(done.stdout), noted.read_text().splitlines()


def test_slow_names_keep_nobody_from_others(slow_lookups: Path, tmp_path: Path) -> None:
    names = [f"slow{number}.test" for number in range(100)]
    outcomes, lookups = fetched(slow_lookups, tmp_path, names, begun=100, wait=False)
    assert outcomes == ["fetched"]
    assert sorted(lookups) == sorted(names)


def test_a_name_is_looked_up_once_for_all_who_ask_at_the_same_time(
    slow_lookups: Path, tmp_path: Path
) -> None:
    outcomes, lookups = fetched(slow_lookups, tmp_path, ["slow.test"] * 50, begun=1, wait=True)
    assert lookups == ["slow.test"]
    assert set(outcomes[1:-1]) == {"Source 'http://slow.test/p' cannot be fetched: its host name is unknown."}


def test_lookups_without_number_are_not_blamed_on_the_source(slow_lookups: Path, tmp_path: Path) -> None:
    names = [f"slow{number}.test" for number in range(256)]
    most = 128  # an account has half of all 256
    outcomes, lookups = fetched(slow_lookups, tmp_path, names, begun=most, wait=True)
    assert len(lookups) == most
    assert outcomes[0].endswith(
        "cannot be fetched: the service is looking up too many host names already; try again, or upload the "
        "image."
    )
    assert outcomes[-1] == "fetched"


def test_slow_names_of_one_account_keep_no_other_from_any(slow_lookups: Path, tmp_path: Path) -> None:
    names = [f"slow{number}.test" for number in range(300)]
    outcomes, lookups = fetched(slow_lookups, tmp_path, names, begun=128, wait=False, account="other")
    assert outcomes == ["fetched"]
    assert len(lookups) == 128
