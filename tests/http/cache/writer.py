"""A process that writes entries until it is killed: `python -m tests.http.cache.writer FOLDER BOUND`."""

from __future__ import annotations

import asyncio
import sys

from imgsvc_http.cache.place_tier import CALL_SECONDS, PlaceTier
from imgsvc_http.storage.folder import Folder
from tests.http.cache.pictures import entry

NUMBERS = 200


async def main(folder: str, bound: str) -> None:
    tier = PlaceTier(Folder(f"file://{folder}", CALL_SECONDS), int(bound))
    tier.put(entry(0, 60_000))
    await tier.written(entry(0).key)
    print("writing", flush=True)
    while True:
        for number in range(NUMBERS):
            tier.put(entry(number, 60_000))
            if number % 8 == 0:
                await tier.written(entry(number).key)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
