"""Folders full of pictures."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support import encoded

SPEC = {"resize": {"width": 24}, "output": {"format": "webp"}}
VARIANTS = {
    "thumb": {"resize": {"width": 24}, "output": {"format": "webp"}},
    "card": {"resize": {"width": 48}, "output": {"format": "jpg"}},
    "hero": {"adjust": {"contrast": 20}, "output": {"format": "png"}},
}


def fill(folder: Path, count: int) -> list[str]:
    """Put pictures into a folder, some of them into folders below; their paths."""
    kinds = [encoded.jpeg(), encoded.png(), encoded.webp(), encoded.gif()]
    names = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        name = f"{'sub/' if number % 3 == 0 else ''}photo{number:05}.{kind.format}"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(kind.data)
        names.append(name)
    return names


def results(folder: Path) -> list[str]:
    """The files below a folder that are no secret of the batch."""
    return sorted(
        Path(place, name).relative_to(folder).as_posix()
        for place, _, names in os.walk(folder)  # which passes over folders that vanish meanwhile
        for name in names
        if not name.startswith(".imgsvc-batch")
    )
