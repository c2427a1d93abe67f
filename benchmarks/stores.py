"""Storing a result: against the raw client's own write, and many at once on one event loop.

The server is Ceph's object gateway on this machine, which .ci/servers unpacks.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

from aiobotocore.session import get_session
from tests.stores.s3_server import BUCKET, S3Server, s3_server

from benchmarks.harness import Bound, print_table, verdict
from imgsvc_core import stores

_ROUNDS = 60
_PARALLEL = 50
_SIZES = (30_000, 300_000, 3_000_000)


async def alternate(
    first: Callable[[], Awaitable[object]], second: Callable[[], Awaitable[object]]
) -> list[list[float]]:
    """Milliseconds that each took, round by round; they take turns in who begins."""
    taken: list[list[float]] = [[], []]
    for turn in range(_ROUNDS + 5):
        for which in (turn % 2, 1 - turn % 2):
            started = time.perf_counter()
            await (first, second)[which]()
            taken[which].append(1000 * (time.perf_counter() - started))
    return [sorted(series[5:]) for series in taken]


async def longest_stall(work: Awaitable[object]) -> float:
    """The longest time, in milliseconds, that the event loop did nothing else while it worked."""
    task = asyncio.ensure_future(work)
    longest, before = 0.0, time.perf_counter()
    while not task.done():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        longest, before = max(longest, now - before), now
    await task
    return 1000 * longest


async def run(server: S3Server) -> int:
    store = {
        "provider": "aws",
        "key": server.key,
        "secret": server.secret,
        "bucket": BUCKET,
        "region": "us-east-1",
    }
    bounds: list[Bound] = []
    rows: list[tuple[str, ...]] = []
    raw = get_session().create_client(
        "s3",
        endpoint_url=server.url,
        region_name="us-east-1",
        aws_access_key_id=server.key,
        aws_secret_access_key=server.secret,
    )
    async with stores.StorePool(endpoints={"aws": server.url}) as pool, raw as client:
        opened = stores.open_store({**store, "path": "ours.jpg"}, pool=pool)
        for size in _SIZES:
            data = bytes(range(256)) * (size // 256)
            item = stores.StoredObject(data, "ours.jpg", "image/jpeg")
            ours, theirs = await alternate(
                lambda item=item: opened.put(item),  # type: ignore[misc]
                lambda data=data: client.put_object(  # type: ignore[misc]
                    Bucket=BUCKET, Key="theirs.jpg", Body=data, ContentType="image/jpeg", ACL="public-read"
                ),
            )
            medians = [series[len(series) // 2] for series in (ours, theirs)]
            rows.append((f"{size / 1000:g} kB", *(f"{median:.2f}" for median in medians)))
            bounds.append(
                Bound(
                    f"added to the raw client's write of {size / 1000:g} kB",
                    medians[0] - medians[1],
                    15,
                    unit=" ms",
                )
            )
        print_table(("median of one write", "imgsvc ms", "raw ms"), rows)

        data = bytes(range(256)) * 800
        parallel = [
            stores.open_store({**store, "path": f"many/{number}.jpg"}, pool=pool)
            for number in range(_PARALLEL)
        ]
        item = stores.StoredObject(data, "many.jpg", "image/jpeg")
        stall = await longest_stall(asyncio.gather(*(one.put(item) for one in parallel)))
        bounds.append(Bound(f"longest stall of {_PARALLEL} writes at once", stall, 50, unit=" ms"))
    return verdict(bounds)


def main() -> int:
    """Run the comparison; 1 where a bound is missed."""
    with s3_server() as server:
        return asyncio.run(run(server))


if __name__ == "__main__":
    sys.exit(main())
