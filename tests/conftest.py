"""Switches and fixtures for all tests.

``HYPOTHESIS_PROFILE=thorough`` tries many more examples; ``--write-goldens`` and ``--golden-differences``
serve the golden pictures.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import logging
import os
import signal
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from imgsvc_core._runtime import libvips
from imgsvc_core._runtime.forkserver import Forkserver

if TYPE_CHECKING:
    from tests.stores.s3_server import S3Server
    from tests.support.golden import GoldenCheck

hypothesis.settings.register_profile(
    "default", max_examples=25, deadline=None, derandomize=os.environ.get("CI") == "true", print_blob=True
)
hypothesis.settings.register_profile("quick", max_examples=5, deadline=None)
hypothesis.settings.register_profile("thorough", max_examples=2000, deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# pytest keeps errors, and the pictures in their frames. Were these to end while libvips logs, which may be in
# any of its threads, they would log as well, and GLib would end the process.
logging.getLogger("pyvips").disabled = True

# Commands that run in the process of a test would leave it without the loaders that others compare with.
setattr(libvips, "_guard", lambda: None)  # noqa: B010

# This process and those that tests start would compile every module anew, which takes longer than most tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The command collects garbage before it imports, and would collect that of all tests each time.
gc.unfreeze = lambda: None

# Commands that tests start inherit ignored signals, as below ``nohup pytest &``, but no handlers.
for _number, _handler in {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGHUP: lambda *_: None,
}.items():
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

_PROCESSES = {
    "imgsvc_batch.executors",
    "imgsvc_http.app",
    "imgsvc_http.workers.pool",
    "multiprocessing",
    "playwright",
    "subprocess",
}
# Fixtures of a conftest.
_STARTED = {
    "chromium",
    "delivering",
    "notifying_service",
    "redis_url",
    "s3",
    "s3_environment",
    "service",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("golden pictures")
    group.addoption("--write-goldens", action="store_true", help="write the golden pictures anew")
    group.addoption(
        "--golden-differences",
        type=Path,
        metavar="FOLDER",
        help="write expected, actual and difference of each golden picture side by side",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return two processes more than there are cores, as tests of services and browsers mostly wait."""
    return len(os.sched_getaffinity(0)) + 2


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Compile a part of the tests in each of several processes, which all need all of them.

    Until they are collected no garbage is: looking for it takes as long as collecting them.
    """
    gc.disable()
    number, count = (os.environ.get(f"PYTEST_XDIST_{name}", "") for name in ("WORKER", "WORKER_COUNT"))
    if number and "tests" in session.config.args:
        files = sorted(Path(__file__).parent.rglob("test_*.py"))
        for file in files[int(number.removeprefix("gw")) :: int(count)]:
            name = ".".join(file.relative_to(Path(__file__).parents[1]).with_suffix("").parts)
            with contextlib.suppress(Exception, pytest.skip.Exception):  # which is told when it is collected
                importlib.import_module(name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that start processes, and spread slow files over the first half of the run.

    So tests that wait run beside tests that compute, and no slow one is left over at the end. Tests of one
    file stay together, in order.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}

    def place(item: pytest.Item) -> tuple[float, Path]:
        mixed = zlib.crc32(item.path.name.encode()) / 2**32
        return mixed / 2 if item.path in slow else mixed, item.path

    items.sort(key=place)
    for item in items:
        if isinstance(item, pytest.Function):
            kind = item.callspec.params.get("kind") if hasattr(item, "callspec") else None
            starts = _starts_processes(item.module.__name__) or _STARTED.intersection(item.fixturenames)
            if starts or kind == "postgresql":
                item.add_marker("processes")


def pytest_collection_finish() -> None:
    """Keep what was collected from every garbage collection, which would take half a second each."""
    gc.freeze()
    gc.enable()


@functools.cache
def _starts_processes(module: str) -> bool:
    """Return True if a module of the tests, or one that it uses, uses what starts processes."""
    values = vars(sys.modules[module]).values()
    used = {str(getattr(value, "__module__", getattr(value, "__name__", ""))) for value in values} - {module}
    return bool(used & _PROCESSES) or any(
        _starts_processes(name) for name in used if name.startswith("tests.") and name in sys.modules
    )


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A server that speaks S3, with two users and a bucket of each."""
    from tests.stores.s3_server import s3_server  # here, as few tests need it

    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def s3_environment(s3: S3Server) -> Iterator[S3Server]:
    """The same server, which fsspec finds by the environment."""
    from s3fs import S3FileSystem

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", s3.key)
        patch.setenv("AWS_SECRET_ACCESS_KEY", s3.secret)
        patch.setenv("AWS_ENDPOINT_URL", s3.url)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        S3FileSystem.clear_instance_cache()  # fsspec keeps connections of an earlier environment
        yield s3
    S3FileSystem.clear_instance_cache()


@pytest.fixture(scope="session")
def check_golden(pytestconfig: pytest.Config) -> GoldenCheck:
    """Call as ``check_golden(name, picture, tolerance)``."""
    from tests.support.golden import GoldenCheck  # here, as it takes most of a second

    return GoldenCheck(
        write=pytestconfig.getoption("write_goldens"),
        differences=pytestconfig.getoption("golden_differences"),
    )


@pytest.fixture(scope="session")
def fork_servers() -> Iterator[dict[Any, Forkserver]]:
    """Fork servers by all that their workers inherit."""
    servers: dict[Any, Forkserver] = {}
    yield servers
    for server in servers.values():
        server.close()


@pytest.fixture(scope="module")
def worker_modules() -> Sequence[str]:
    """Modules that workers of a file's tests would each load."""
    return ()


@pytest.fixture
def shared_fork_server(
    fork_servers: dict[Any, Forkserver], worker_modules: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let each batch have a fork server that is forked from one which has loaded the library."""
    begin = Forkserver.begin

    def fork(
        memory_bytes: int | None,
        scratch: Path | None = None,
        *,
        umask: int = -1,
        modules: Sequence[str] = (),
        preloads: bool = True,
    ) -> Forkserver:
        inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        modules = (*modules, *worker_modules)
        key = memory_bytes, scratch, umask, preloads, modules, os.getcwd(), *inherited.items()
        if key not in fork_servers:
            fork_servers[key] = begin(memory_bytes, scratch, umask=umask, modules=modules, preloads=preloads)
        return fork_servers[key].fork_server()

    monkeypatch.setattr(Forkserver, "begin", fork)
