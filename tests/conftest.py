"""Switches and fixtures for all tests.

``HYPOTHESIS_PROFILE=thorough`` tries many more examples; ``--write-goldens`` and ``--golden-differences``
serve the golden pictures.
"""

from __future__ import annotations

import logging
import os
import signal
import zlib
from pathlib import Path

import hypothesis
import pytest

from tests.support.golden import GoldenCheck

hypothesis.settings.register_profile(
    "default", max_examples=40, deadline=None, derandomize=os.environ.get("CI") == "true", print_blob=True
)
hypothesis.settings.register_profile("quick", max_examples=5, deadline=None)
hypothesis.settings.register_profile("thorough", max_examples=2000, deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# pytest keeps errors, and the pictures in their frames. Were these to end while libvips logs, which may be in
# any of its threads, they would log as well, and GLib would end the process.
logging.getLogger("pyvips").disabled = True

# The processes that tests start would compile every module anew, which takes longer than most tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Commands that tests start inherit ignored signals, as below ``nohup pytest &``, but no handlers.
for _number, _handler in {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGHUP: lambda *_: None,
}.items():
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)


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
    """Return one process more than there are cores, as tests of services wait for a third of their time."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mix files that wait with files that compute. Tests of one file stay together, in their order."""
    items.sort(key=lambda item: zlib.crc32(item.nodeid.partition("::")[0].encode()))


@pytest.fixture(scope="session")
def check_golden(pytestconfig: pytest.Config) -> GoldenCheck:
    """Call as ``check_golden(name, picture, tolerance)``."""
    return GoldenCheck(
        write=pytestconfig.getoption("write_goldens"),
        differences=pytestconfig.getoption("golden_differences"),
    )
