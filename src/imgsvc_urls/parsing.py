"""The path of a picture's URL: its options and its source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.errors import Problem, SpecError, invalid
from imgsvc_core.spec.declare import params
from imgsvc_core.spec.density import at_density
from imgsvc_core.spec.merging import Document
from imgsvc_core.spec.options import OPTIONS, request_of, typed
from imgsvc_core.spec.presets import PRESET, PRESET_NAME, PRESET_NAME_EXPECTATION, parse_merged, with_presets
from imgsvc_core.spec.request import Spec
from imgsvc_urls.delivery import URL_OPTIONS, Delivery
from imgsvc_urls.errors import UrlExpired
from imgsvc_urls.sources import Source, decoded, parse_source

_AS_SENT = re.compile(r"(?:[!$&-;=@-~]|%[0-9A-Fa-f]{2})*")  # printable ASCII but for " # < > ? and lone %
_MAX_SHOWN = 60
_MAX_ADVICE = 3  # finding the meant name takes longer than everything else


@attrs.frozen
class PictureUrl:
    """What a URL asks for.

    ``options`` are the texts of the options of the request by name, and ``presets`` the names of presets in
    the order in which they apply.
    """

    options: Mapping[str, str]
    source: Source
    delivery: Delivery = Delivery()
    presets: tuple[str, ...] = ()

    def request(self, presets: Mapping[str, Mapping[str, Any]] | None = None) -> Document:
        """Return the request as a JSON document: presets, and the options over them.

        Raises:
            SpecError: there is no such preset, or a shorthand cannot be read.
        """
        return request_of(self.options, with_presets(self.presets, presets or {}, {}))

    def spec(
        self, presets: Mapping[str, Mapping[str, Any]] | None = None, *, dpr: float | None = None
    ) -> Spec:
        """Return the request, with its sizes at the pixel density.

        Args:
            presets: presets by name, as `parse_preset` returns them.
            dpr: a pixel density, which replaces the density of the URL.

        Raises:
            SpecError: with all problems found.
        """
        density = dpr or self.delivery.dpr or 1
        if not self.presets:
            return _spec_of(tuple(self.options.items()), density)
        return _at_density(parse_merged(self.request(presets), self.presets), density)

    def check_expiry(self, now: float) -> None:
        """Raise `UrlExpired` if the URL is not valid at a Unix time."""
        if self.delivery.expires is not None and now >= self.delivery.expires:
            raise UrlExpired("The URL has expired: ask for a new one.")


@lru_cache(512)  # the pictures of a site have the same options
def _spec_of(options: tuple[tuple[str, str], ...], density: float) -> Spec:
    """Return the request of options without presets."""
    return _at_density(parse_merged(request_of(dict(options), {}), ()), density)


def _at_density(spec: Spec, density: float) -> Spec:
    try:
        return at_density(spec, density)
    except SpecError as error:
        after = f"after multiplication by dpr {density:g}"
        raise SpecError(problem.and_then(after) for problem in error.problems) from None


def parse(text: str) -> PictureUrl:
    """Return what a path asks for.

    The values of options are checked by `PictureUrl.spec`, since presets may complete them.

    Args:
        text: ``/{option}/.../{source}``, the path after the signature as it was sent.

    Raises:
        SpecError: with all problems found.

    >>> parse("/resize:800x/quality:70/photos/shoe.jpg").spec().resize.width
    800
    """
    if not _AS_SENT.fullmatch(text):
        message = (
            "The URL must be percent-encoded: write % as %25, ? as %3F, # as %23, and other text in UTF-8"
        )
        raise invalid("", message, f"got {shown(text)}")
    segments = text.removeprefix("/").split("/")
    given: list[tuple[str, str]] = []
    for segment in segments:
        name, colon, value = decoded(segment).partition(":")
        if not colon:
            break
        given.append((name, value))
    return _collected(given, segments[len(given) :])


def read_options(given: Sequence[tuple[str, str]]) -> tuple[dict[str, str], tuple[str, ...], Delivery]:
    """Return the options of the request, the names of presets and the options of the delivery.

    Raises:
        SpecError: with all problems found.
    """
    presets = tuple(value for name, value in given if name == PRESET)
    names = [name for name, _ in given if name != PRESET]
    problems = _unknown(dict.fromkeys(name for name in names if name not in URL_OPTIONS))
    problems += [
        Problem(name, f"Option '{name[:_MAX_SHOWN]}' must be given once", f"got it {count} times")
        for name, count in _repeated(names)
    ]
    problems += [
        Problem(PRESET, f"The name of a preset must be {PRESET_NAME_EXPECTATION}", f"got {shown(name)}")
        for name in presets
        if not PRESET_NAME.fullmatch(name)
    ]
    problems += [
        Problem(PRESET, f"Preset '{name[:_MAX_SHOWN]}' must be given once", f"got it {count} times")
        for name, count in _repeated(presets)
    ]
    declared = params(Delivery)
    delivery = Delivery()
    try:
        delivery = Delivery(
            **{name: typed(declared[name], value) for name, value in given if name in declared}
        )
    except SpecError as error:
        problems += error.problems
    if problems:
        raise SpecError(problems)
    return {name: value for name, value in given if name in OPTIONS}, presets, delivery


_known_options = lru_cache(512)(read_options)


def _collected(given: list[tuple[str, str]], segments: list[str]) -> PictureUrl:
    """Return the URL of some options and the segments of a source, with the problems of both."""
    problems: list[Problem] = []
    try:
        options, presets, delivery = _known_options(tuple(given))
    except SpecError as error:
        problems += error.problems
    try:
        source = _source(segments)
    except SpecError as error:
        problems += error.problems
    if problems:
        raise SpecError(problems)
    return PictureUrl(options, source, delivery, presets)


def _source(segments: list[str]) -> Source:
    if segments and segments[0] in URL_OPTIONS:
        name = segments[0]
        raise invalid(name, f"Option '{name}' must be written {name}:value", "got no value")
    if segments and "%25" in segments[0] and ":" in decoded(decoded(segments[0])):
        raise invalid("", "Options must be percent-encoded once", f"got {shown(segments[0])}")
    return parse_source(segments)


def _repeated(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return the names that are there several times, and how often."""
    if len(set(names)) == len(names):  # as a rule
        return []
    return [(name, count) for name, count in Counter(names).items() if count > 1]


def _unknown(names: Iterable[str]) -> list[Problem]:
    shorter = [name[:_MAX_SHOWN] for name in names]
    return [
        Problem(name, f"There is no option '{name}'{_advice(name) if place < _MAX_ADVICE else ''}")
        for place, name in enumerate(shorter)
    ]


def _advice(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, URL_OPTIONS, n=1)
    return f"; did you mean '{near[0]}'?" if near else ""
