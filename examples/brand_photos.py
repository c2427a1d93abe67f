"""Put a logo on all photographs of a folder: ``python examples/brand_photos.py photos branded logo.svg``.

A file that is no readable picture is reported and left out; the others go on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import imgsvc_core as imgsvc

SPEC = imgsvc.parse(
    {
        "resize": {"width": 1200, "height": 1200, "upscale": False},
        "watermark": {"id": "logo", "gravity": "bottom-right", "padding": 12, "width": 96, "opacity": 0.8},
        "output": {"format": "webp", "metadata": "copyright"},
    }
)


def main(photos: str, branded: str, logo: str) -> int:
    target = Path(branded)
    target.mkdir(parents=True, exist_ok=True)
    failures = 0
    for photo in sorted(path for path in Path(photos).iterdir() if path.is_file()):
        try:
            result = imgsvc.process(photo, SPEC, target / f"{photo.name}.webp", watermarks={"logo": logo})
        except imgsvc.ImgsvcError as error:
            failures += 1
            print(f"{photo.name}: {error.slug}: {error.message}", file=sys.stderr)
        else:
            print(f"{photo.name}: {result.input.bytes:,} -> {result.output.bytes:,} bytes")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
