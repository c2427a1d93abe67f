"""The same on a Dask cluster, here of two processes: ``python examples/batch_cluster.py photos site``.

On a real cluster, the address of its scheduler is all that changes.
"""

from __future__ import annotations

import sys

from distributed import LocalCluster

from batch_folder import main as process_folder


def main(source: str, target: str) -> int:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        return process_folder(source, target, cluster.scheduler_address)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
