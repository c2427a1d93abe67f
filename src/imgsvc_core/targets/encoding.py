"""Encode a rendered image in the format that suits it best."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import attrs
import pyvips

from imgsvc_core._runtime.deadline import check_time
from imgsvc_core.errors import BudgetUnreachable, LookUnreachable, OutputTooLarge
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.content import kind_of
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.saving import Encoded, save
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.plan import Plan

if TYPE_CHECKING:
    from imgsvc_core.targets.look import Score

_Refusal = BudgetUnreachable | LookUnreachable | OutputTooLarge
_REFUSALS = BudgetUnreachable, LookUnreachable, OutputTooLarge


def encode(
    image: pyvips.Image | Raster,
    plan: Plan,
    file: BinaryIO | None = None,
    *,
    digest: bool = False,
    original: bytes | None = None,
) -> Encoded:
    """Encode a rendered image as its plan says, into a binary file or into memory.

    An image that is encoded more than once is in memory. With ``digest`` the facts have ``sha256``.
    ``original`` is the file of the source as it may stay: it is taken, in memory, if that saves bytes.
    """
    if original is not None and plan.original == "always":
        encoded = of_original(original)
    elif plan.is_encoded_once:
        encoded = save(image, plan.save[0], file if original is None else None, digest=digest)
    else:
        encoded = _encode_best(image, plan.save, plan.save_exactly)
    if plan.original == "if smaller":
        encoded = _smaller(encoded, plan, original)
    return digested(encoded) if digest else encoded


def digested(encoded: Encoded) -> Encoded:
    """Return a file with ``sha256`` among its facts, unless it went to a target."""
    if encoded.data is None:
        return encoded
    info = attrs.evolve(encoded.info, sha256=ByteSource(encoded.data).sha256())
    return attrs.evolve(encoded, info=info)


def of_original(data: bytes) -> Encoded:
    """Return the file of the source, in which only metadata has changed. Its size is told as it is shown."""
    found = probe(ByteSource(data)).info  # the orientation may have moved to where decoders look for it
    width, height = found.upright_size
    return Encoded(attrs.evolve(found, width=width, height=height, upright=True, contents=None), data)


def _smaller(encoded: Encoded, plan: Plan, original: bytes | None) -> Encoded:
    """Return the original unless the encoded file is smaller."""
    if original is not None and len(original) <= encoded.info.bytes:
        kept = of_original(original)
        return attrs.evolve(
            kept, notes=("Encoding it again saves nothing, so the pixels stay as they were.",)
        )
    if original is None and encoded.info.bytes >= plan.info.bytes:
        title = FORMATS[plan.info.format].title
        note = f"The result is no smaller, but metadata of {title} goes only with another encoding."
        return attrs.evolve(encoded, notes=(*encoded.notes, note))
    return encoded


def _encode_best(
    image: pyvips.Image, usual: Sequence[SaveSettings], exact: Sequence[SaveSettings] = ()
) -> Encoded:
    """Encode an image in memory in several formats, and return the file that loses the least quality to fit.

    Of several such files the smallest is taken. Photographs are encoded with loss, graphics without, and
    pictures that may be either in both ways. A format that cannot hold the image is no failure if another
    one can.
    """
    kind = kind_of(image, usual[0]) if exact else "photograph"
    ways = {"photograph": (usual, exact), "graphic": (exact, usual), "mixed": ((*exact, *usual),)}[kind]
    refusals: list[_Refusal] = []
    for candidates in ways:
        fitting = _fitting(image, candidates, refusals)
        if fitting:
            return min(fitting, key=lambda found: found[:2])[2]
    raise min(refusals, key=_rank)


def _rank(refusal: _Refusal) -> tuple[float, float]:
    """Return the sort key of refusals: the one that tells the most comes first."""
    return getattr(refusal, "smallest", math.inf), -getattr(refusal, "best", -math.inf)


def _fitting(
    image: pyvips.Image, candidates: Sequence[SaveSettings], refusals: list[_Refusal]
) -> list[tuple[int, int, Encoded]]:
    """Return the encoded files, each with its loss of quality and its size. Add refusals to the others."""
    fitting: list[tuple[int, int, Encoded]] = []
    reference = _reference(image)
    for settings in dict.fromkeys(candidates):
        check_time()
        try:
            if settings.look is None:
                encoded = save(image, settings)
                fitting.append((_given_up(settings, encoded), encoded.info.bytes, encoded))
                continue
            from imgsvc_core.targets.look import save_with_look  # few requests promise a look

            smallest = min((size for _, size, _ in fitting), default=None)
            found = save_with_look(image, settings, reference, most=smallest)
            if found is not None:
                fitting.append((0, found.info.bytes, found))
        except _REFUSALS as refusal:
            refusals.append(refusal)
    return fitting


def _reference(image: pyvips.Image) -> Score:
    """Return the function that scores files of a picture in memory. It imports NumPy when it is called."""

    @functools.cache
    def reference() -> Any:
        from imgsvc_core.similarity.reference import Reference

        return Reference(image)

    return lambda data: reference().score(data)


def _given_up(settings: SaveSettings, encoded: Encoded) -> int:
    """Return the difference between the requested quality and the quality of the file."""
    asked = FORMATS[settings.format].quality if settings.quality is None else settings.quality
    return 0 if asked is None or encoded.info.quality is None else asked - encoded.info.quality
