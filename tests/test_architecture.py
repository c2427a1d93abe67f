"""What holds for the project as a whole: directions of imports, lightness, names, declarations."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import attrs
import pytest

import imgsvc_core as imgsvc
from imgsvc_core import errors
from imgsvc_core.spec import Operation

TOP = Path(__file__).parent.parent
OPERATIONS = [*imgsvc.OPERATIONS.values(), *imgsvc.FILTERS]
PARAMS = [(operation, param) for operation in OPERATIONS for param in imgsvc.params(operation).values()]
HEAVY = {
    "PIL", "adlfs", "aiohttp", "asyncio", "click", "cv2", "distributed", "gcsfs", "imagecodecs", "imgsvc_cli",
    "imgsvc_http", "numpy", "ossfs", "pillow_heif", "psd_tools", "rich", "s3fs", "scipy",
}  # fmt: skip


def test_imports_point_in_the_allowed_directions() -> None:
    """In a process of its own, as import-linter disables all loggers that there are."""
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_importing_the_library_stays_light() -> None:
    code = "import imgsvc_core, json, sys; print(json.dumps(list(sys.modules)))"
    loaded = json.loads(subprocess.check_output([sys.executable, "-c", code], text=True))
    assert not HEAVY & {name.partition(".")[0] for name in loaded}


def test_importing_the_library_changes_nothing_in_the_process() -> None:
    code = """if True:
        import os, pyvips
        def state():
            return (
                dict(os.environ), pyvips.cache_get_max(), pyvips.cache_get_max_mem(),
                pyvips.cache_get_max_files(), pyvips.type_find("VipsForeignLoad", "pdfload"),
            )
        before = state()
        import imgsvc_core
        assert state() == before
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_exist_and_are_listed_once() -> None:
    assert all(hasattr(imgsvc, name) for name in imgsvc.__all__)
    assert len(imgsvc.__all__) == len(set(imgsvc.__all__))


def test_every_error_and_every_operation_is_public() -> None:
    classes = [item for item in vars(errors).values() if isinstance(item, type)]
    raised = {item.__name__ for item in classes if issubclass(item, imgsvc.ImgsvcError)}
    assert raised | {operation.__name__ for operation in OPERATIONS} <= set(imgsvc.__all__)


def test_slugs_of_errors_are_unique_and_drawn_in_the_tree() -> None:
    classes = [item for item in vars(errors).values() if isinstance(item, type)]
    raised = [item for item in classes if issubclass(item, imgsvc.ImgsvcError)]
    assert len({item.slug for item in raised}) == len(raised)
    tree = {word for line in (errors.__doc__ or "").splitlines() for word in line.split()}
    assert {item.__name__ for item in raised} <= tree
    assert {item.slug for item in raised if item is not imgsvc.ImgsvcError} <= tree


def test_the_version_is_that_of_the_package() -> None:
    assert imgsvc.__version__ == version("imgsvc")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.key)
def test_operations_are_immutable_documented_values(operation: type[Operation]) -> None:
    assert (operation.__doc__ or "").strip().split("\n")[0].endswith((".", ";"))
    assert operation.title
    field = next(iter(attrs.fields(operation)))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(object.__new__(operation), field.name, 1)


@pytest.mark.parametrize(
    ("operation", "param"), PARAMS, ids=[f"{item.key}.{param.name}" for item, param in PARAMS]
)
def test_parameters_are_documented_and_in_range(operation: type[Operation], param: imgsvc.Param) -> None:
    assert param.doc.endswith(".")
    assert not param.kind.expectation.endswith(".")
    for value in (param.default, param.neutral):
        if not param.required and value is not None:
            assert param.kind.parse(param.kind.unparse(value)) == value
    assert param.schema()["description"].startswith(param.doc)
