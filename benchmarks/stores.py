"""Storing a result: against the raw client's own write, and many at once on one event loop.

The servers run on this machine, in processes of their own; .ci/servers unpacks them. The same code writes
to the stores of Amazon, DigitalOcean and Google's developer keys. A raw client is the maker's own where the
project writes through one, and plain HTTP with a token where it does not.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import aiohttp

import imgsvc_stores as stores
from benchmarks.harness import Bound, print_table, verdict
from benchmarks.store_servers import BUCKET, PROVIDERS, Place

Put = Callable[[bytes], Awaitable[object]]

_ROUNDS = 60
_PARALLEL = ((50, 200_000), (50, 3_000_000), (10, 20_000_000))
_SIZES = (30_000, 300_000, 3_000_000)
_NAME, _TYPE = "theirs.jpg", "image/jpeg"


@contextlib.contextmanager
def serving(provider: str) -> Iterator[Place]:
    """The server of a provider, in another process."""
    command = [sys.executable, "-m", "benchmarks.store_servers", provider]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Place(**json.loads(process.stdout.readline()))
        finally:
            process.stdin.close()


@contextlib.asynccontextmanager
async def raw_client(place: Place) -> AsyncIterator[Put]:
    """The raw client's own write, over a connection that stays open."""
    store = place.store
    match store["provider"]:
        case "aws":
            from aiobotocore.session import get_session

            client = get_session().create_client(
                "s3",
                endpoint_url=place.endpoints["aws"],
                region_name=store["region"],
                aws_access_key_id=store["key"],
                aws_secret_access_key=store["secret"],
            )
            async with client as s3:
                yield lambda data: s3.put_object(
                    Bucket=BUCKET, Key=_NAME, Body=data, ContentType=_TYPE, ACL="public-read"
                )
        case "microsoft":
            from azure.storage.blob import ContentSettings
            from azure.storage.blob.aio import BlobServiceClient

            credential = {"account_name": store["account"], "account_key": store["key"]}
            async with BlobServiceClient(place.endpoints["microsoft"], credential=credential) as service:
                blob = service.get_blob_client(BUCKET, _NAME)
                settings = ContentSettings(content_type=_TYPE)
                yield lambda data: blob.upload_blob(data, overwrite=True, content_settings=settings)
        case "alibaba":
            import alibabacloud_oss_v2 as oss
            from alibabacloud_oss_v2.aio import AsyncClient

            keys = oss.credentials.StaticCredentialsProvider(store["key"], store["secret"])
            bucket = AsyncClient(
                oss.config.Config(
                    region=store["region"], endpoint=place.endpoints["alibaba"], credentials_provider=keys,
                    use_path_style=True,
                )
            )  # fmt: skip
            yield lambda data: bucket.put_object(
                oss.PutObjectRequest(bucket=BUCKET, key=_NAME, body=data, content_type=_TYPE)
            )
            await bucket.close()
        case provider:
            async with aiohttp.ClientSession(raise_for_status=True) as http:
                yield lambda data: _plain(http, provider, place.raw, data)


async def _plain(http: aiohttp.ClientSession, provider: str, raw: dict[str, str], data: bytes) -> None:
    """One request of HTTP."""
    url, token = raw["url"], raw["token"]
    headers = {"Content-Type": _TYPE, "Authorization": f"Bearer {token}"}
    if provider == "google":
        query = {"uploadType": "multipart", "predefinedAcl": "publicRead"}
        body = aiohttp.MultipartWriter("related")
        body.append_json({"name": _NAME, "contentType": _TYPE})
        body.append(io.BytesIO(data), {"Content-Type": _TYPE})
        request = http.post(url, params=query, data=body, headers={**headers, **body.headers})
    elif provider == "rackspace":
        request = http.put(
            f"{url}/{_NAME}", data=data, headers={"Content-Type": _TYPE, "X-Auth-Token": token}
        )
    else:
        request = http.put(f"{url}/{_NAME}", data=data, headers={**headers, "x-amz-acl": "public-read"})
    async with request as answer:
        await answer.read()


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


async def run(place: Place) -> list[Bound]:
    """All bounds of one provider."""
    provider = place.store["provider"]
    bounds: list[Bound] = []
    rows: list[tuple[str, ...]] = []
    async with stores.StorePool(endpoints=place.endpoints) as pool, raw_client(place) as theirs:

        def opened(path: str) -> stores.Store:
            return stores.open_store({**place.store, "path": path}, keyfiles=place.keyfiles, pool=pool)

        ours = opened("ours.jpg")
        for size in _SIZES:
            data = bytes(range(256)) * (size // 256)
            item = stores.StoredObject(data, "ours.jpg", _TYPE)
            taken = await alternate(
                lambda item=item: ours.put(item),  # type: ignore[misc]
                lambda data=data: theirs(data),  # type: ignore[misc]
            )
            medians = [series[len(series) // 2] for series in taken]
            rows.append((f"{provider}, {size / 1000:g} kB", *(f"{median:.2f}" for median in medians)))
            what = f"{provider}: added to the raw client's write of {size / 1000:g} kB"
            bounds.append(Bound(what, medians[0] - medians[1], 15, unit=" ms"))
        print_table(("median of one write", "imgsvc ms", "raw ms"), rows)
        for count, size in _PARALLEL:
            many = [opened(f"many/{number}.jpg") for number in range(count)]
            item = stores.StoredObject(bytes(range(256)) * (size // 256), "many.jpg", _TYPE)
            stall = await longest_stall(asyncio.gather(*(one.put(item) for one in many)))
            what = f"{provider}: longest stall of {count} writes of {size / 1000:g} kB at once"
            bounds.append(Bound(what, stall, 50, unit=" ms"))
    return bounds


def main() -> int:
    """Run the comparison; 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", action="append", choices=PROVIDERS, help="one of them, or several")
    bounds: list[Bound] = []
    for provider in parser.parse_args().provider or PROVIDERS:
        with serving(provider) as place:
            bounds += asyncio.run(run(place))
    return verdict(bounds)


if __name__ == "__main__":
    sys.exit(main())
