"""What type checkers, `help()` and `dir()` tell of the public names."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import imgsvc_batch
import imgsvc_core as imgsvc
from imgsvc_core.formats.table import FORMATS, OUTPUT_NAMES
from imgsvc_core.spec.declare import Accepts, Parameters
from imgsvc_core.spec.kinds import (
    AspectRatio,
    Boolean,
    Choice,
    HexColor,
    Integer,
    IntegerOr,
    Number,
    NumberOr,
    Text,
    Words,
)
from imgsvc_core.spec.output import OutputAlias, OutputFormat

SCRIPT = Path(__file__).with_name("user_script.py")
OPERATIONS = [*imgsvc.OPERATIONS.values(), *imgsvc.FILTERS]
PYTHON_TYPES = {Integer: int, Number: float, Boolean: bool, Text: str, HexColor: imgsvc.Color}


def _expected() -> Iterator[tuple[int, str]]:
    for number, line in enumerate(SCRIPT.read_text(encoding="utf-8").splitlines(), 1):
        if "# error: " in line:
            yield number, line.partition("# error: ")[2]


def test_mypy_accepts_what_is_right_and_refuses_what_is_wrong(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", "--output=json", f"--cache-dir={os.devnull}",
            "--config-file=", "--follow-imports=silent", str(SCRIPT),
        ],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    errors = [json.loads(line) for line in done.stdout.splitlines()]
    found = {(item["line"], item["message"]) for item in errors if item["severity"] == "error"}
    assert {line for line, _ in found} == {line for line, _ in _expected()}, found
    for line, words in _expected():
        assert any(number == line and words in message for number, message in found), (line, words, found)


def test_pyright_does_so_in_an_editor(tmp_path: Path) -> None:
    """It takes names of installed packages as public only where it can follow how ``__all__`` is made."""
    (tmp_path / SCRIPT.name).write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    told = json.loads(done.stdout)["generalDiagnostics"]
    found = {item["range"]["start"]["line"] + 1: item["message"] for item in told}
    assert found.keys() == {line for line, _ in _expected()}, found


def test_process_can_be_found() -> None:
    assert {"process", "process_variants"} <= set(dir(imgsvc))
    assert dir(imgsvc) == sorted(imgsvc.__all__)


@pytest.mark.parametrize("cls", [imgsvc.Spec, *OPERATIONS], ids=lambda cls: cls.__name__)
def test_signatures_and_docstrings_tell_of_every_parameter(cls: type[Parameters]) -> None:
    arguments = inspect.signature(cls).parameters
    described = (cls.__doc__ or "").partition("\n\nArgs:\n")[2]
    for param in imgsvc.params(cls).values():
        argument = arguments[param.attribute]
        assert argument.annotation not in (Any, object, inspect.Parameter.empty)
        assert argument.default is (inspect.Parameter.empty if param.required else param.default)
        words = f"{param.attribute}: {param.doc} [{param.facts}]".split()
        assert " ".join(words) in " ".join(described.split())


@pytest.mark.parametrize("cls", [imgsvc.Limits, imgsvc_batch.Batch], ids=lambda cls: cls.__name__)
def test_signatures_tell_types(cls: type) -> None:
    for argument in inspect.signature(cls).parameters.values():
        assert argument.annotation not in ("Any", "object", Any, object, inspect.Parameter.empty), argument


def test_a_run_takes_every_option_of_a_batch() -> None:
    arguments = get_type_hints(imgsvc_batch.Batch.__init__)
    for name in ("source", "target", "variants", "in_place", "return"):
        del arguments[name]
    assert arguments == get_type_hints(imgsvc_batch.BatchOptions)


@pytest.mark.parametrize("cls", OPERATIONS, ids=lambda cls: cls.__name__)
def test_annotations_are_those_of_the_kinds(cls: type[Parameters]) -> None:
    hints = get_type_hints(cls)
    for param in imgsvc.params(cls).values():
        hint = hints[param.attribute]
        stored = get_args(hint)[0] if get_origin(hint) is Accepts else hint
        parts = set(get_args(stored)) if get_origin(stored) not in (Literal, tuple) else {stored}
        types = parts - {type(None)} or {stored}
        assert (type(None) in parts) == (param.default is None)
        if isinstance(param.kind, Choice):
            assert {word for item in types for word in get_args(item)} == set(param.kind.options)
        elif isinstance(param.kind, Words):
            assert set(get_args(get_args(stored)[0])) == set(param.kind.options)
        elif isinstance(param.kind, AspectRatio):
            assert types == {tuple[float, float]}
        elif isinstance(param.kind, IntegerOr | NumberOr):
            kept = tuple(value for value in param.kind.words.values() if isinstance(value, str))
            number = int if isinstance(param.kind, IntegerOr) else float
            assert types == {number, *([Literal[kept]] if kept else [])}
        else:
            assert types == {PYTHON_TYPES[type(param.kind)]}


def test_output_formats_are_those_of_the_table() -> None:
    assert set(get_args(OutputFormat)) == {*OUTPUT_NAMES, "auto"}
    assert set(get_args(OutputAlias)) == {alias for name in OUTPUT_NAMES for alias in FORMATS[name].aliases}
