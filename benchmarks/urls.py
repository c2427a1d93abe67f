"""URLs of pictures: checking a signature and reading a path.

``python -m benchmarks.urls`` reads signed paths of several kinds in this process, ours and those of each
dialect. The bounds are on CPU time: other programs do not count.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import quote

from benchmarks.harness import Bound, Contender, compare, print_table, timed, verdict
from imgsvc_urls import ROOT, Signer, parse, verify
from imgsvc_urls.dialects import Dialect, ForeignRequest, imagor, imgproxy, ipx, thumbor

SECRETS = {"k1": "a secret of a signing key"}
SIGNER = Signer("", "k1", SECRETS["k1"])
SIZES = (320, 640, 1280)
WIDTHS = range(1, 20_001)  # more than any cache holds
LIMIT = 60  # microseconds


def main() -> int:
    """Print the microseconds of each step; return 1 if all of them together take more than the bound."""
    usual = [_path(width) for width in SIZES]
    remote = [_path(width, "https://example.org/shoes/blue suede.jpg?v=1") for width in SIZES]
    new = [_path(width) for width in WIDTHS]
    contenders: dict[str, Contender] = {
        "signature": _each(usual, lambda path: verify(path, SECRETS)),
        "signature and path": _each(usual, lambda path: parse(verify(path, SECRETS))),
        "signature and path, URL as source": _each(remote, lambda path: parse(verify(path, SECRETS))),
        "signature, path and request": _each(usual, _read),
        "signature, path and new request": _each(new, _read),
    }
    contenders |= {f"dialect {name}": _each(*of_dialect) for name, of_dialect in _of_dialects()}
    series = compare(contenders, rounds=9, repeats=2000)
    print_table(("", "µs"), [(name, f"{one.cpu * 1e6:.1f}") for name, one in series.items()])
    bounded = ["signature, path and request", *(name for name in series if name.startswith("dialect"))]
    return verdict([Bound(name, series[name].cpu * 1e6, LIMIT, unit=" µs") for name in bounded])


def _of_dialects() -> Iterator[tuple[str, tuple[list[str], Callable[[str], object]]]]:
    """Yield the names of dialects with signed targets, and what checks and reads these."""
    key, salt, source = "6c6f636b2d6b6579", "73616c742d31", "https://example.org/shoes/blue%20suede.jpg"
    texts = [f"/rs:fill:{width}:600/g:noea/q:70/plain/{source}@webp" for width in SIZES]
    signed = [imgproxy.sign(bytes.fromhex(key), bytes.fromhex(salt), text) for text in texts]
    targets = [f"/{signature}{text}" for signature, text in zip(signed, texts, strict=True)]
    yield "imgproxy", (targets, _read_by(imgproxy.Imgproxy(keys=[key], salts=[salt])))
    texts = [f"{width}x600/top/filters:quality(70):format(webp)/{source}" for width in SIZES]
    targets = [f"/{thumbor.sign(key, text)}/{text}" for text in texts]
    yield "thumbor", (targets, _read_by(thumbor.Thumbor(keys=[key])))
    targets = [f"/{imagor.sign(key, text)}/{text}" for text in texts]
    yield "imagor", (targets, _read_by(imagor.Imagor(keys=[key])))
    targets = [f"/s_{width}x600,pos_top,q_70,f_auto/{source}" for width in SIZES]
    yield "ipx", (targets, _read_by(ipx.Ipx()))
    targets = [f"/_next/image?url={quote(source, safe='')}&w={width}&q=75" for width in SIZES]
    yield "ipx, next/image", (targets, _read_by(ipx.Ipx(widths=SIZES)))


def _read_by(dialect: Dialect) -> Callable[[str], object]:
    headers = {"Host": "img.example.org", "User-Agent": "benchmark", "Accept": "image/avif,image/webp,*/*"}
    return lambda target: dialect.parse(ForeignRequest(target, headers))


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
