"""A service that watches its own event loop: ``python -m tests.http.watched_service STATE``.

It prints its address and key, and for every line that it reads how long, in seconds, the loop was held up
at most since the last one: by work of its own thread, not by whatever else the machine does meanwhile.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from aiohttp import web

from imgsvc_http import Settings, create_app
from imgsvc_http.certificate import tls_context
from imgsvc_http.serve import first_key
from imgsvc_http.services import SERVICES
from imgsvc_http.settings import Server, Workers

_TICK_SECONDS = 0.005


class Watch:
    """The most work that the loop's thread did before it came back to a task that was due."""

    longest = 0.0

    async def run(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(_TICK_SECONDS)
            self.longest = max(self.longest, time.thread_time() - before)


async def main(state: Path) -> None:
    server = Server(state_folder=state, base_url="https://localhost")
    app = create_app(Settings(server=server, workers=Workers(number=1)))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls_context(server)).start()
    print(f"https://localhost:{runner.addresses[0][1]}", await first_key(app[SERVICES]), flush=True)
    watch = Watch()
    ticking = asyncio.create_task(watch.run())
    while await asyncio.to_thread(sys.stdin.readline):
        print(watch.longest, flush=True)
        watch.longest = 0.0
    ticking.cancel()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
