"""The segments of a JPEG as they are written: a marker, a length and a content."""

from __future__ import annotations

APP2 = 0xE2
ICC = b"ICC_PROFILE\0"
MOST_OF_ICC = 65_519  # bytes of a profile that fit into one segment, beside its place among them


def make_segment(marker: int, content: bytes) -> bytes:
    """Return a segment."""
    return b"".join((bytes((0xFF, marker)), (len(content) + 2).to_bytes(2, "big"), content))


def of_profile(profile: bytes) -> list[tuple[int, bytes]]:
    """Return marker and content of each segment of a color profile."""
    parts = [profile[start : start + MOST_OF_ICC] for start in range(0, len(profile), MOST_OF_ICC)]
    return [(APP2, ICC + bytes((number, len(parts))) + part) for number, part in enumerate(parts, start=1)]
