"""What `help()`, `dir()`, messages and pickles say of public names."""

from __future__ import annotations

import pickle
import pydoc
import re
import subprocess
import sys
import typing
from types import FunctionType

import attrs
import jedi
import pytest

import imgsvc_core as imgsvc
from tests.support.photos import coffee

DEFINED = {name: getattr(imgsvc, name) for name in imgsvc.__all__}
NAMED = {name: value for name, value in DEFINED.items() if isinstance(value, type | FunctionType)}


@pytest.mark.parametrize("name", NAMED)
def test_names_are_those_of_the_package(name: str) -> None:
    value = NAMED[name]
    assert f"{value.__module__}.{value.__qualname__}" == f"imgsvc_core.{name}"
    assert pickle.loads(pickle.dumps(value)) is value
    assert pydoc.plain(pydoc.render_doc(value)).partition("\n")[0].endswith(f"{name} in module imgsvc_core")
    assert not isinstance(value, type) or not attrs.has(value) or typing.get_type_hints(value)


def test_help_shows_public_names_only() -> None:
    text = pydoc.plain(pydoc.render_doc(imgsvc))
    classes = text[text.index("\nCLASSES\n") : text.index("\n    class ")]
    shown = {line.strip().partition("(")[0] for line in classes.splitlines()[2:] if line.strip()}
    bases = {"builtins.object", "builtins.dict", "builtins.Exception", "abc.ABC", "typing.Generic"}
    assert shown - set(imgsvc.__all__) - bases <= {"imgsvc_core.spec.declare.Parameters"}
    functions = text[text.index("\nFUNCTIONS\n") : text.index("\nDATA\n")]
    found = set(re.findall(r"^    (?:async )?(\w+)\(", functions, re.MULTILINE))
    assert {"process", "compare", "inspect"} <= found
    assert found <= set(imgsvc.__all__)


def test_results_have_public_names_only() -> None:
    names = {name for name in dir(imgsvc.process(coffee())) if not name.startswith("_")}
    assert names == {
        "data", "faces", "facts", "input", "layers", "media_type", "notes", "output", "plan", "save",
        "timing", "to_dict", "to_numpy", "to_pil", "to_vips",
    }  # fmt: skip


def test_editors_complete_names_parameters_and_results() -> None:
    code = "import imgsvc_core as imgsvc\n"
    completed = {item.name for item in jedi.Script(f"{code}imgsvc.").complete()}
    assert set(imgsvc.__all__) - {"__version__"} <= completed
    [resize] = jedi.Script(f"{code}imgsvc.Resize(").get_signatures()
    assert {"width", "height", "mode", "gravity"} <= {param.name for param in resize.params}
    made = {item.name for item in jedi.Script(f'{code}imgsvc.process("a.jpg").').complete()}
    assert {"data", "output", "save", "to_numpy"} <= made


def test_names_cost_an_import_no_fields() -> None:
    """Fields of operations are made when they are read, as that takes longer than all else of an import."""
    code = """
import imgsvc_core
from imgsvc_core.spec.declare import Parameters
print([len(vars(Parameters)[name]._known) for name in ("__attrs_attrs__", "__signature__")])
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[0, 0]\n"
