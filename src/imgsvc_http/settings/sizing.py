"""How many processes the service has, and how much memory its workers, on the machine where it runs."""

from __future__ import annotations

import resource
from typing import Any

import attrs

from imgsvc_core._runtime.machine import Machine, machine
from imgsvc_http.settings.all_settings import Settings

_CORES_FOR_EACH = 2  # a listening process keeps up with the workers of two cores
# From docs/sizing.md, with the engine of webhooks.
_MOST_CONNECTIONS = 100_000
_OWN_BYTES, _PROCESS_BYTES = 2**28, 2**25


@attrs.frozen(kw_only=True)
class Sizing:
    """What was chosen.

    Attributes:
        processes: how many processes accept connections.
        workers: how many pictures are processed at a time.
        most_workers: how many are while several accounts need them.
        worker_memory_bytes: the most data that a worker may hold.
        threads: how many threads all workers have together.
    """

    processes: int
    workers: int
    most_workers: int
    worker_memory_bytes: int
    threads: int


def sizing_of(settings: Settings, found: Machine | None = None) -> Sizing:
    """Return the sizing that settings lead to, on this machine or on another one."""
    found = found or machine()
    server, workers = settings.server, settings.workers
    processes = server.processes or max(1, found.cores // _CORES_FOR_EACH)
    pool = found.pool(
        workers.number or None,
        workers.memory_bytes,
        reserved=_OWN_BYTES
        + processes * _PROCESS_BYTES
        + server.upload_memory_bytes
        + settings.cache.memory_bytes,
        extra=True,
    )
    assert pool.memory_bytes is not None
    return Sizing(
        processes=min(processes, pool.workers),  # never more than there are workers
        workers=pool.workers,
        most_workers=pool.most,
        worker_memory_bytes=pool.memory_bytes,
        threads=workers.number or found.cores,
    )


def described(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return what was found and what was chosen, as plain values."""
    own = machine()
    found = attrs.asdict(own) | {"cores": own.cores}
    return {"found": found, "chosen": attrs.asdict(sizing_of(settings))}


def most_connections() -> int:
    """Return half of the files that the process may open: sources, stores and databases need the rest."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_CONNECTIONS if most == resource.RLIM_INFINITY else max(1, min(_MOST_CONNECTIONS, most // 2))
