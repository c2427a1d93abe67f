"""Measure how the code is built: sizes, long functions, import circles, and what one request passes.

``python tools/structure.py [--tree PATH] [--list]`` measures this checkout or another one, so that two
commits can be compared. The packages that the code imports must be installed.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pyvips
from PIL import Image

TOP = Path(__file__).resolve().parent.parent
LONG = 60
PICTURE = TOP / "examples" / "pictures" / "portrait.jpg"
SIZE = (1600, 1250)  # of the source: small pictures have shortcuts
WIDTH = 800
REQUEST = {"resize": {"width": WIDTH}, "filter": {"sepia": {"value": 100}}, "output": {"format": "webp"}}
SEPIA = [[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]]
WARM_UP = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tree", type=Path, default=TOP, help="a checkout with src/ and tests/")
    parser.add_argument(
        "--list", action="store_true", help="name every long function, circle and function passed"
    )
    parser.add_argument("--trace", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    source = arguments.tree.resolve() / "src"
    if arguments.trace:
        print(json.dumps(trace(source)))
        return 0
    print_sizes(arguments.tree.resolve(), with_names=arguments.list)
    print_circles(source, with_names=arguments.list)
    print_request(source, with_names=arguments.list)
    return 0


def print_sizes(checkout: Path, *, with_names: bool) -> None:
    """Print files, lines and long functions of each package, of its rooms and of the tests."""
    print(f"{'folder':16}{'files':>7}{'at the top':>12}{'lines':>9}{f'functions over {LONG} lines':>28}")
    packages = sorted(path.parent for path in (checkout / "src").glob("*/__init__.py"))
    for package in packages:
        print_size(package.name, package)
        for room in sorted(path.parent for path in package.glob("*/__init__.py")):
            print_size(f"  {room.name}", room)
    long = print_size("src", checkout / "src")
    print_size("tests", checkout / "tests")
    if with_names:
        for lines, name in sorted(long, reverse=True):
            print(f"  {lines:4} {name}")


def print_size(title: str, folder: Path) -> list[tuple[int, str]]:
    files, lines, long = measured(folder)
    top = sum(path.name != "__init__.py" for path in folder.glob("*.py"))
    print(f"{title:16}{files:7,}{top:12,}{lines:9,}{len(long):28,}")
    return long


def measured(folder: Path) -> tuple[int, int, list[tuple[int, str]]]:
    """Return the number of files, their lines, and the long functions as lines and name."""
    files = sorted(folder.rglob("*.py"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    long = [
        (lines, f"{file.relative_to(folder.parent)}:{node.lineno} {node.name}")
        for file, text in zip(files, texts, strict=True)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > LONG
    ]
    return len(files), sum(text.count("\n") for text in texts), long


def print_circles(source: Path, *, with_names: bool) -> None:
    """Print groups of modules that import each other, at import time and with all other imports."""
    files = {module_name(path, source): path for path in source.rglob("*.py")}
    for title, everything in (("at import", False), ("in functions and for types too", True)):
        graph = {name: set(imports(path, name, files, everything=everything)) for name, path in files.items()}
        found = circles(graph)
        modules = sum(map(len, found))
        print(f"import circles, {title + ':':32}{len(found):3} of {modules} modules together")
        if with_names:
            for circle in found:
                print(f"  {' '.join(sorted(circle))}")


def module_name(path: Path, source: Path) -> str:
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path, name: str, files: dict[str, Path], *, everything: bool) -> Iterator[str]:
    """Yield the modules of the project that a module imports."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in statements(ast.parse(path.read_text(encoding="utf-8")), everything=everything):
        if isinstance(node, ast.Import):
            candidates = [alias.name for alias in node.names]
        else:
            parts = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*parts, *filter(None, [node.module])])
            candidates = [
                f"{base}.{alias.name}" if f"{base}.{alias.name}" in files else base for alias in node.names
            ]
        yield from (module for module in candidates if module in files and module != name)


def statements(tree: ast.AST, *, everything: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that run when the module is imported, or all of them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif everything or not (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or for_types(node)):
            yield from statements(node, everything=everything)


def for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def circles(graph: dict[str, set[str]]) -> list[frozenset[str]]:
    """Return the groups of two or more modules each of which reaches the others."""
    reached = {name: reachable(graph, name) for name in graph}
    groups = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph
        if name in reached[name]
    }
    return sorted(groups, key=len, reverse=True)


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def print_request(source: Path, *, with_names: bool) -> None:
    """Print what one picture passes, as measured in a process that imports the given source."""
    command = [sys.executable, __file__, "--trace", "--tree", str(source.parent)]
    environment = os.environ | {"PYTHONPATH": str(source)}
    counted = json.loads(subprocess.check_output(command, env=environment, text=True))
    print("one JPEG to WebP with a resize and sepia:")
    for title, calls in counted.items():
        files = {name.partition(":")[0] for name in calls}
        print(f"{title:32}{len(calls):5} functions, {sum(calls.values()):5,} calls, {len(files):3} files")
    if with_names:
        for name, count in counted["imgsvc, any later one"].items():
            print(f"  {count:4} {name}")


def trace(source: Path) -> dict[str, dict[str, int]]:
    """Return how often each Python function is called by the first picture of a process and by a later one.

    Functions of the source count, and for comparison those of Pillow and pyvips in the same job. A generator
    that goes on counts as a call. Bodies of modules and classes do not count.
    """
    import imgsvc_core

    assert Path(imgsvc_core.__file__).is_relative_to(source), imgsvc_core.__file__
    written = io.BytesIO()
    Image.open(PICTURE).resize(SIZE).save(written, "JPEG", quality=90)
    data = written.getvalue()
    pillow, vips = (Path(module.__file__ or "").parent for module in (Image, pyvips))
    calls: dict[Path, Counter[str]] = {folder: Counter() for folder in (source, pillow, vips)}

    def count(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        for folder, counter in calls.items():
            if code.co_filename.startswith(f"{folder}{os.sep}"):
                path = Path(code.co_filename).relative_to(folder)
                counter[f"{path}:{code.co_firstlineno} {code.co_qualname}"] += 1

    def counted(job: Callable[[], object], folder: Path) -> dict[str, int]:
        calls[folder].clear()
        sys.setprofile(count)
        job()
        sys.setprofile(None)
        return dict(sorted(calls[folder].items()))

    threading.setprofile(count)  # also in the threads that the first call starts
    found = {}
    for title, folder, job in (
        ("imgsvc", source, lambda: imgsvc_core.process(data, REQUEST)),
        ("Pillow", pillow, lambda: with_pillow(data)),
        ("pyvips", vips, lambda: with_pyvips(data)),
    ):
        found[f"{title}, first of a process"] = counted(job, folder)
        for _ in range(WARM_UP):
            job()
        found[f"{title}, any later one"] = counted(job, folder)
    return found


def with_pillow(data: bytes) -> bytes:
    image = Image.open(io.BytesIO(data))
    image.draft("RGB", (WIDTH, WIDTH))
    resized = image.resize((WIDTH, WIDTH * image.height // image.width), Image.Resampling.LANCZOS)
    written = io.BytesIO()
    resized.convert("RGB", tuple(number for row in SEPIA for number in (*row, 0))).save(written, "WEBP")
    return written.getvalue()


def with_pyvips(data: bytes) -> bytes:
    image = pyvips.Image.thumbnail_buffer(data, WIDTH).recomb(SEPIA)
    encoded: bytes = image.cast("uchar").webpsave_buffer()
    return encoded


if __name__ == "__main__":
    sys.exit(main())
