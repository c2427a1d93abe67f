"""A square thumbnail that keeps what matters: ``python examples/thumbnail.py photo.heic thumb.webp``."""

from __future__ import annotations

import sys

import imgsvc_core as imgsvc

SIDE = 256


def main(source: str, target: str) -> int:
    spec = imgsvc.Spec(
        resize=imgsvc.Resize(width=SIDE, height=SIDE, mode="fit", gravity="smart"),
        output=imgsvc.Output(metadata="copyright"),
    )
    result = imgsvc.process(source, spec, target)
    before, after = result.input, result.output
    print(f"{before.width} x {before.height}, {before.bytes:,} bytes", end=" -> ")
    print(f"{after.width} x {after.height}, {after.bytes:,} bytes of {after.format}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
