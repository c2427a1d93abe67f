"""A process that writes entries until it is killed: `python -m tests.http.cache.writer URL FOLDER BOUND`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from imgsvc_http.cache.place_tier import PlaceTier
from imgsvc_http.cache.places import LocalPlace
from imgsvc_http.state.database import Database
from tests.http.cache.pictures import entry

NUMBERS = 200


async def main(url: str, folder: str, bound: str) -> None:
    async with await Database.open(url) as db:
        tier = PlaceTier(LocalPlace(Path(folder)), db, int(bound))
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
