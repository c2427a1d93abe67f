"""The benchmarks can be run: what they switch off exists, and none needs an argument."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if "def main(" in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_without_arguments(name: str) -> None:
    main = importlib.import_module(f"benchmarks.{name}").main
    needed = [item for item in inspect.signature(main).parameters.values() if item.default is item.empty]
    assert not needed or _is_given_a_list(name)


def _is_given_a_list(name: str) -> bool:
    return "main(sys.argv[1:])" in (FOLDER / f"{name}.py").read_text(encoding="utf-8")


def test_what_shortcuts_switch_off_exists() -> None:
    from benchmarks.shortcuts import WAYS

    for way in WAYS:
        with way.off():
            pass
