"""Control groups decide how many processes work, and how much memory each of them may hold."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from imgsvc_core._runtime.machine import Machine, find_machine, oom_kills
from imgsvc_http.settings import Settings, sizing_of
from imgsvc_http.settings.sizing import most_connections
from tests.support.processes import control_group

GIB = 2**30
CPUS = len(os.sched_getaffinity(0))
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def system(root: Path, groups: str, files: Mapping[str, object]) -> Path:
    """Write a folder as the kernel shows control groups."""
    written = {"proc/self/cgroup": groups} | {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in written.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


TWO = {"cpu.max": "150000 100000", "memory.max": 300_000_000}
LOOSE = {"cpu.max": "800000 100000", "memory.max": GIB}
ONE = {
    "cpu/cpu.cfs_quota_us": 150_000,
    "cpu/cpu.cfs_period_us": 100_000,
    "memory/memory.limit_in_bytes": 300_000_000,
}


def below(folder: str, files: Mapping[str, object]) -> dict[str, object]:
    return {f"{folder}/{name}": text for name, text in files.items()}


@pytest.mark.parametrize(
    ("groups", "files"),
    [
        ("0::/", TWO),
        ("0::/pod/app", below("pod/app", TWO)),
        ("0::/pod/app", {"pod/app/cpu.max": "max 100000", "pod/app/memory.max": "max"} | below("pod", TWO)),
        ("0::/pod/app", below("pod/app", LOOSE) | below("pod", TWO)),
        ("0::/pod/app", below("pod", LOOSE) | below("pod/app", TWO)),
        ("0::/", {**TWO, "memory.max": "max", "memory.high": 300_000_000}),
        ("0::/../../pod/app", TWO),
        ("0::/docker/1234", TWO),
        ("3:memory:/\n2:cpu:/", ONE),
        ("4:memory:/docker/1\n3:cpu,cpuacct:/docker/1", ONE),
        (
            "4:memory:/docker/1\n3:cpu,cpuacct:/docker/1\n1:name=systemd:/docker/1\n0::/docker/1",
            {
                "cpu,cpuacct/docker/1/cpu.cfs_quota_us": 150_000,
                "cpu,cpuacct/docker/1/cpu.cfs_period_us": 100_000,
                "cpu,cpuacct/cpu.cfs_quota_us": -1,
                "cpu,cpuacct/cpu.cfs_period_us": 100_000,
                "memory/docker/1/memory.limit_in_bytes": 9_223_372_036_854_771_712,
                "memory/docker/memory.limit_in_bytes": 300_000_000,
            },
        ),
        (
            "2:memory:/app\n0::/app",
            {"memory/app/memory.limit_in_bytes": 300_000_000, "unified/app/cpu.max": "150000 100000"},
        ),
    ],
    ids=[
        "v2", "nested", "limit-above", "tighter-above", "tighter-below", "high", "other-namespace",
        "path-of-host", "v1", "v1-path-of-host", "v1-nested", "hybrid",
    ],
)  # fmt: skip
def test_the_tightest_group_counts(groups: str, files: Mapping[str, object], tmp_path: Path) -> None:
    found = find_machine(system(tmp_path, groups, files))
    assert (found.cpu_quota, found.memory_limit_bytes) == (1.5, 300_000_000)
    assert (found.cpus, found.memory_bytes) == (CPUS, MEMORY)


@pytest.mark.parametrize(
    ("groups", "files"),
    [
        ("", {}),
        ("0::/", {"cpu.max": "max 100000", "memory.max": "max", "memory.high": "max"}),
        ("0::/", {"cpu.max": "", "memory.max": "garbage"}),
        ("0::/", {"memory.max": 2 * MEMORY}),
        (
            "2:cpu:/\n1:memory:/",
            {
                "cpu/cpu.cfs_quota_us": -1,
                "cpu/cpu.cfs_period_us": 100_000,
                "memory/memory.limit_in_bytes": 9_223_372_036_854_771_712,
            },
        ),
    ],
    ids=["nothing", "max", "unreadable", "more-than-there-is", "v1"],
)
def test_without_a_limit_the_machine_counts(groups: str, files: Mapping[str, object], tmp_path: Path) -> None:
    found = find_machine(system(tmp_path, groups, files))
    assert (found.cpu_quota, found.memory_limit_bytes, found.cores) == (None, None, CPUS)


def test_kills_are_those_of_the_own_group(tmp_path: Path) -> None:
    two = {"memory.events": "oom 7\noom_kill 9", "app/memory.events": "low 0\noom 4\noom_kill 3"}
    assert oom_kills(system(tmp_path / "2", "0::/app", two)) == 3
    one = {"memory/app/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5"}
    assert oom_kills(system(tmp_path / "1", "4:memory:/app", one)) == 5
    assert oom_kills(tmp_path) == 0


def test_outside_of_any_group_kills_are_those_of_the_machine(tmp_path: Path) -> None:
    root = system(tmp_path, "", {})
    (root / "proc/vmstat").write_text("pgfault 12\noom_kill 4\ndrop_pagecache 2\n")
    assert oom_kills(root) == 4


def host(cpus: int = 64, quota: float | None = None, memory: int | None = None) -> Machine:
    return Machine(cpus=cpus, cpu_quota=quota, memory_bytes=256 * GIB, memory_limit_bytes=memory)


@pytest.mark.parametrize(
    ("quota", "cores"), [(None, 64), (0.1, 1), (1.0, 1), (1.5, 2), (2.0, 2), (100.0, 64)]
)
def test_all_of_a_quota_is_used(quota: float | None, cores: int) -> None:
    assert host(quota=quota).cores == host(quota=quota).pool().workers == cores


def test_a_pod_of_a_large_node_has_what_it_may_use() -> None:
    everything, pod = sizing_of(Settings(), host()), sizing_of(Settings(), host(quota=2, memory=2 * GIB))
    assert (everything.processes, everything.workers, everything.worker_memory_bytes) == (32, 64, 2 * GIB)
    assert (pod.processes, pod.workers, pod.threads) == (1, 2, 2)


@pytest.mark.parametrize("memory", [n * GIB // 4 for n in (3, 4, 6, 8, 16, 32, 64, 512)])
@pytest.mark.parametrize("cores", [1, 2, 8, 64])
def test_workers_never_need_more_than_the_limit(cores: int, memory: int) -> None:
    settings = Settings()
    sizing = sizing_of(settings, host(quota=cores, memory=memory))
    caches = settings.server.upload_memory_bytes + settings.cache.memory_bytes
    assert sizing.most_workers * sizing.worker_memory_bytes + caches <= memory
    assert sizing.worker_memory_bytes >= 2**28
    assert 1 <= sizing.workers <= sizing.most_workers <= 2 * cores
    pool = host(quota=cores, memory=memory).pool(memory_bytes=4 * GIB)
    assert pool.memory_bytes is not None
    assert pool.workers * pool.memory_bytes < memory


def test_little_memory_leaves_few_processes() -> None:
    sizing = sizing_of(Settings(), host(memory=2 * GIB))
    assert sizing.processes == sizing.workers == 1


def test_the_cache_of_the_service_is_none_of_the_workers_memory() -> None:
    settings = Settings()
    sizing = sizing_of(settings, host(quota=2, memory=3 * GIB))
    own = GIB // 4 + GIB // 32 + settings.server.upload_memory_bytes + settings.cache.memory_bytes
    assert sizing.most_workers * sizing.worker_memory_bytes <= 3 * GIB - own


@pytest.mark.parametrize(
    ("files", "connections"), [(1, 1), (1024, 512), (10**6, 100_000), (resource.RLIM_INFINITY, 100_000)]
)
def test_half_of_the_files_are_for_connections(
    files: int, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert most_connections() == connections


def test_a_number_of_workers_that_is_asked_for_is_kept() -> None:
    pool = host(memory=2 * GIB).pool(8, 4 * GIB)
    assert (pool.workers, pool.memory_bytes) == (8, 2**28)
    assert host().pool(8, 4 * GIB).memory_bytes == 4 * GIB
    assert host().pool().memory_bytes is None


def test_the_kernels_own_files_are_understood(tmp_path: Path) -> None:
    """The command runs in real groups: the tightest of nested ones counts."""
    with (
        control_group("cpu", {"cpu.cfs_quota_us": 100_000, "cpu.cfs_period_us": 100_000}) as cpu,
        control_group("memory", {"memory.limit_in_bytes": GIB}) as memory,
    ):
        enter = f"echo $$ > {cpu}/cgroup.procs; echo $$ > {memory}/cgroup.procs; exec "
        command = f"{sys.executable} -m imgsvc_cli serve --print-sizing --json --state {tmp_path}"
        found = subprocess.run(["sh", "-c", enter + command], capture_output=True, text=True, check=True)
    sizing = json.loads(found.stdout)
    assert sizing["found"] | {"cpus": CPUS, "memory_bytes": MEMORY} == {
        "cpus": CPUS,
        "cpu_quota": 1.0,
        "memory_bytes": MEMORY,
        "memory_limit_bytes": GIB,
        "cores": 1,
    }
    assert (sizing["chosen"]["processes"], sizing["chosen"]["workers"]) == (1, 1)
    assert sizing["chosen"]["worker_memory_bytes"] < GIB
    assert os.listdir(tmp_path) == []
