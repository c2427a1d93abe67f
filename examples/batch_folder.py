"""Three sizes of every picture in a folder: ``python examples/batch_folder.py photos site``.

Run it again after adding pictures: only the new ones are worked on.
"""

from __future__ import annotations

import sys

import imgsvc_batch

VARIANTS = {
    "thumb": {"resize": {"width": 160, "height": 160, "mode": "fit"}, "output": {"format": "webp"}},
    "card": {"resize": {"width": 480}, "output": {"format": "webp"}},
    "hero": {"resize": {"width": 1600, "upscale": False}, "output": {"format": "webp", "quality": 85}},
}


def main(source: str, target: str, cluster: str | None = None) -> int:
    summary = imgsvc_batch.run(source, target, VARIANTS, cluster=cluster, on_event=_tell)
    print(f"{summary.done} done, {summary.failed} failed, {summary.skipped} unchanged")
    return 1 if summary.failed else 0


def _tell(event: imgsvc_batch.Event) -> None:
    print(f"{event.key}: {event.message or f'{len(event.outputs)} files'}")


if __name__ == "__main__":  # workers are processes of their own, which load this file too
    sys.exit(main(*sys.argv[1:]))
