"""URLs of pictures: checking a signature and reading a path.

``python -m benchmarks.urls`` reads signed paths of several kinds in this process. The bound is on CPU time:
other programs do not count.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable

from benchmarks.harness import Bound, Contender, compare, print_table, timed, verdict
from imgsvc_core.urls import ROOT, Signer, parse, verify

SECRETS = {"k1": "a secret of a signing key"}
SIGNER = Signer("", "k1", SECRETS["k1"])
WIDTHS = range(1, 20_001)  # more than any cache holds
LIMIT = 60  # microseconds


def main() -> int:
    """Print the microseconds of each step; return 1 if all of them together take more than the bound."""
    usual = [_path(width) for width in (320, 640, 1280)]
    remote = [_path(width, "https://example.org/shoes/blue suede.jpg?v=1") for width in (320, 640, 1280)]
    new = [_path(width) for width in WIDTHS]
    contenders: dict[str, Contender] = {
        "signature": _each(usual, lambda path: verify(path, SECRETS)),
        "signature and path": _each(usual, lambda path: parse(verify(path, SECRETS))),
        "signature and path, URL as source": _each(remote, lambda path: parse(verify(path, SECRETS))),
        "signature, path and request": _each(usual, _read),
        "signature, path and new request": _each(new, _read),
    }
    series = compare(contenders, rounds=9, repeats=2000)
    print_table(("", "µs"), [(name, f"{one.cpu * 1e6:.1f}") for name, one in series.items()])
    whole = series["signature, path and request"]
    return verdict([Bound("signature, path and request", whole.cpu * 1e6, LIMIT, unit=" µs")])


def _path(width: int, source: str = "photos/2026/11/blue suede shoes.jpg") -> str:
    url = SIGNER.url(source, resize=f"{width}x600", mode="fit", gravity="face", format="auto", quality=70)
    return url.removeprefix(ROOT)


def _read(path: str) -> object:
    return parse(verify(path, SECRETS)).spec()


def _each(paths: Iterable[str], read: Callable[[str], object]) -> Contender:
    """Read one path after the other."""
    endless = itertools.cycle(paths)
    return timed(lambda: read(next(endless)))


if __name__ == "__main__":
    sys.exit(main())
