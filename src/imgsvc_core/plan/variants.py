"""Several plans for one source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import attrs

from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.plan.plan import Plan

K = TypeVar("K")


def decodings(plans: Mapping[K, Plan]) -> Iterator[tuple[LoadSettings, dict[K, Plan]]]:
    """Return settings to decode the source, each with the plans that use it.

    Plans share a decoding at the largest scale that any of them needs. An enlarged drawing suits only one
    plan.
    """
    groups: dict[tuple[bool, float, bool], dict[K, Plan]] = {}
    for key, plan in plans.items():
        load = plan.load
        groups.setdefault((load.all_frames, max(1.0, load.scale), load.array), {})[key] = plan
    for group in groups.values():
        settings = next(iter(group.values())).load
        if len(group) > 1:
            scale = max(plan.load.scale for plan in group.values())
            metadata = any(plan.load.metadata for plan in group.values())
            settings = attrs.evolve(settings, scale=scale, sequential=True, metadata=metadata)
            group = {key: attrs.evolve(plan, load=settings) for key, plan in group.items()}
        yield settings, group
