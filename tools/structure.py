"""Measure how the code is built: sizes, long functions, import circles, and what one request passes.

``python tools/structure.py [CHECKOUT] [--list]`` measures this checkout or another one, so that two commits
can be compared. The packages that the code imports must be installed.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

TOP = Path(__file__).resolve().parent.parent
LONG = 60
PICTURE = TOP / "examples" / "pictures" / "portrait.jpg"
REQUEST = {"resize": {"width": 300}, "output": {"format": "webp"}}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=TOP, help="a checkout with src/ and tests/")
    parser.add_argument(
        "--list", action="store_true", help="name every long function, circle and function passed"
    )
    parser.add_argument("--trace", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    source = arguments.checkout.resolve() / "src"
    if arguments.trace:
        print(json.dumps(trace(source)))
        return 0
    print_sizes(arguments.checkout.resolve(), with_names=arguments.list)
    print_circles(source, with_names=arguments.list)
    print_request(source, with_names=arguments.list)
    return 0


def print_sizes(checkout: Path, *, with_names: bool) -> None:
    """Print files, lines and long functions of each package, of its rooms and of the tests."""
    print(f"{'folder':16}{'files':>7}{'lines':>9}{f'functions over {LONG} lines':>28}")
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
    print(f"{title:16}{files:7,}{lines:9,}{len(long):28,}")
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
    """Print what one request passes, as measured in a process that imports the given source."""
    command = [sys.executable, __file__, "--trace", str(source.parent)]
    environment = os.environ | {"PYTHONPATH": str(source)}
    first, second = json.loads(subprocess.check_output(command, env=environment, text=True))
    for title, calls in (("first of a process", first), ("any later one", second)):
        files = {name.partition(":")[0] for name in calls}
        print(
            f"one request, JPEG to WebP, {title + ':':20}{len(calls):5} functions, "
            f"{sum(calls.values()):5,} calls, {len(files)} files"
        )
    if with_names:
        for name, count in second.items():
            print(f"  {count:4} {name}")


def trace(source: Path) -> list[dict[str, int]]:
    """Return how often each function of the source is called by one `process`, and by a second one.

    A generator that goes on counts as a call. Bodies of modules and classes do not count.
    """
    import imgsvc_core

    assert Path(imgsvc_core.__file__).is_relative_to(source), imgsvc_core.__file__
    data = PICTURE.read_bytes()
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_flags & inspect.CO_OPTIMIZED
            and code.co_filename.startswith(str(source))
        ):
            calls[
                f"{Path(code.co_filename).relative_to(source)}:{code.co_firstlineno} {code.co_qualname}"
            ] += 1

    found = []
    for _ in range(2):
        calls.clear()
        threading.setprofile(count)
        sys.setprofile(count)
        imgsvc_core.process(data, REQUEST)
        sys.setprofile(None)
        found.append(dict(sorted(calls.items())))
    return found


if __name__ == "__main__":
    sys.exit(main())
