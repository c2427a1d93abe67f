"""The arguments of a batch, checked before it begins."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import attrs

from imgsvc_batch.manifest import files_of
from imgsvc_batch.naming import Template
from imgsvc_batch.places import (
    absolute,
    expected_target,
    folder_of,
    is_in_memory,
    is_remote,
    is_storable,
    parts_of,
    relative,
    several,
    split_pattern,
)
from imgsvc_batch.work import Job
from imgsvc_core import (
    LimitExceeded,
    Limits,
    Problem,
    Request,
    SourceError,
    SourceUnreachable,
    Spec,
    SpecError,
    parse,
)
from imgsvc_core.errors import invalid, invalid_id
from imgsvc_core.sources import is_url, open_bytes, shown_url

_MANIFEST = "imgsvc-batch"
_NAMED_SPECS = "specs by their names, such as {'': spec} for a single one"
_SMALL = {"resize": {"width": 64, "height": 64, "upscale": False}}


def default_manifest(target: str | Path) -> Path:
    """Return the default manifest of a target: in the target itself, or for a URL in the current folder."""
    place = absolute(target)
    if is_url(place):
        return Path(f"{_MANIFEST}-{hashlib.sha256(place.rstrip('/').encode()).hexdigest()[:8]}.sqlite")
    return Path(place) / f".{_MANIFEST}.sqlite"


def _refusal(name: str, expected: str, got: object) -> SpecError:
    return invalid(name, f"Batch '{name}' parameter must be {expected}, got {got!r}")


def _as_source(value: str | Path | Sequence[str | Path]) -> str:
    if isinstance(value, str | Path) or not isinstance(value, Sequence):
        return _as_place("source", value)
    places = [_as_place("source", place) for place in value]
    if not places:
        raise _refusal("source", "a path, a URL or some paths", value)
    if len(places) == 1:
        return places[0]
    if urls := [place for place in places if is_url(place)]:
        raise _refusal("source", "paths of this machine where it has several, or one URL", urls[0])
    for place in places:
        if not split_pattern(place)[1] and not os.path.exists(place):
            raise SourceUnreachable(f"Source '{place}' does not exist.")
    return several(places)


def _as_target(value: str | Path | None) -> str | None:
    if value is None:
        return None
    place = _as_place("target", value)
    if expected := expected_target(place):
        raise _refusal("target", expected, shown_url(place))
    return place


def _as_place(name: str, value: object) -> str:
    if not isinstance(value, str | Path) or str(value) in ("", "file://", "local://"):
        raise _refusal(name, "a path or a URL", value)
    place = absolute(value)
    if not is_storable(place):
        raise _refusal(name, "UTF-8, without NUL", place)
    return place


def _as_manifest(manifest: str | Path | None) -> Path | None:
    value: Any = manifest
    if value is not None and (not isinstance(value, str | Path) or str(value) == ""):
        raise _refusal("manifest", "the path of a file", value)
    return None if value is None else Path(value)


def _as_template(template: str | Template | None) -> Template | None:
    value: Any = template
    if value is not None and not isinstance(value, str | Template):
        raise _refusal("template", "a template", value)
    return Template(value) if isinstance(value, str) else value


def _as_variants(variants: Mapping[str, Request]) -> dict[str, Spec]:
    """Parse the specs, and report the problems of all of them at once."""
    value: Any = variants
    if not isinstance(value, Mapping) or not value:
        raise _refusal("variants", _NAMED_SPECS, value)
    problems: list[Problem] = []
    parsed: dict[str, Spec] = {}
    for name, spec in value.items():
        if not (isinstance(name, str) and is_storable(name)):
            raise _refusal("variants", "specs by names that are UTF-8, without NUL", name)
        if "/" in name or name.startswith("."):
            raise _refusal("variants", "specs by names without '/' and without '.' in front", name)
        try:
            parsed[name] = parse(spec)
        except SpecError as error:
            problems += [_in_variant(name, problem) for problem in error.problems]
    if problems:
        raise _refusal("variants", _NAMED_SPECS, value) if _is_spec(value) else SpecError(problems)
    return parsed


def _is_spec(value: Any) -> bool:
    try:
        parse(value)
    except SpecError:
        return False
    return True


def _unknown_picture(path: str, id: str) -> SpecError:
    return invalid_id(path, "must be one of the given watermarks", f"got '{id}'")


def _in_variant(name: str, problem: Problem) -> Problem:
    expected = f"Variant '{name}': {problem.expected}" if name else problem.expected
    return Problem(f"{name}.{problem.path}".strip("."), expected, problem.detail)


def _check_workers(_: object, __: object, value: Any) -> None:
    if value is not None and (type(value) is not int or value < 1):
        raise _refusal("workers", "a number of processes from 1 up", value)


def _check_limits(_: object, __: object, value: Any) -> None:
    if not isinstance(value, Limits):
        raise _refusal("limits", "imgsvc_core.Limits", value)


def _check_watermarks(_: object, __: object, value: Any) -> None:
    named = isinstance(value, Mapping) and all(isinstance(id, str) and is_storable(id) for id in value)
    if not named:
        raise _refusal("watermarks", "pictures by their ids", value)


class InPlaceOptions(TypedDict, total=False):
    """The optional arguments of a batch in place; see `Batch`."""

    manifest: str | Path | None
    workers: int | None
    cluster: str | None
    limits: Limits
    watermarks: Mapping[str, str]
    force: bool


class BatchOptions(InPlaceOptions, total=False):
    """The optional arguments of a batch; see `Batch`."""

    template: str | Template | None
    overwrite: bool


@attrs.frozen(kw_only=True)
class Batch:
    """A batch and its arguments. Raise `SpecError` if an argument is wrong.

    Attributes:
        source: a folder, a pattern with wildcards, a file, an fsspec URL of one, or a list of paths.
        target: a folder or an fsspec URL of one.
        variants: specs by name; each input gives one result for each.
        template: how results are named.
        manifest: the file of the manifest; `default_manifest` by default.
        workers: the number of processes on this machine; one for each core by default.
        cluster: the address of a Dask scheduler; the batch runs on this machine by default.
        limits: how much work one picture may cause.
        watermarks: pictures by the ids that specs use.
        overwrite: replace files in the target that are not results of the same input.
        force: process unchanged inputs again.
        in_place: the result of an input takes its place. There is one variant, and no target, template or
            overwriting. ``target`` is then the folder of the source, or its URL.
    """

    source: str = attrs.field(converter=_as_source)
    _target: str | None = attrs.field(default=None, converter=_as_target)
    variants: Mapping[str, Spec] = attrs.field(converter=_as_variants)
    template: Template | None = attrs.field(default=None, converter=_as_template)
    manifest: Path | None = attrs.field(default=None, converter=_as_manifest)
    workers: int | None = attrs.field(default=None, validator=_check_workers)
    cluster: str | None = None
    limits: Limits = attrs.field(factory=Limits, validator=_check_limits)
    watermarks: Mapping[str, str] = attrs.field(factory=dict, validator=_check_watermarks)
    overwrite: bool = False
    force: bool = False
    in_place: bool = False

    def __attrs_post_init__(self) -> None:
        if self._target is None and not self.in_place:
            raise _refusal("target", "a path or a URL", None)
        problems = list(self._problems_in_place()) if self.in_place else []
        if not problems:
            self.naming.check(self.variants)
        problems += [
            _in_variant(name, problem)
            for name, spec in self.variants.items()
            for id in spec.pictures
            if id not in self.watermarks
            for problem in _unknown_picture(spec.path_of_picture(id), id).problems
        ]
        places = {split_pattern(part)[0] for _, part in parts_of(self.source)}
        folders = (place for place in places if not os.path.isfile(place))  # there may be many named files
        if not self.in_place and any(relative(folder, self.target) == "" for folder in folders):
            message = (
                "Batch 'target' parameter must be another folder than the source, "
                f"got '{shown_url(self.target)}'; results can also be in_place of the source"
            )
            problems.append(Problem("target", message))
        if self.cluster is not None and self.in_memory:
            message = "Batch 'cluster' parameter must not be given with places in 'memory://'"
            problems.append(Problem("cluster", message))
        if problems:
            raise SpecError(problems)

    def _problems_in_place(self) -> Iterator[Problem]:
        """Give what cannot be asked for in place."""
        needless = {"target": self._target, "template": self.template, "overwrite": self.overwrite}
        for name, given in needless.items():
            if given:
                yield Problem(name, f"Batch '{name}' parameter must not be given in place, got {given!r}")
        if len(self.variants) > 1:
            names = ", ".join(self.variants)
            yield Problem("variants", f"Batch 'variants' parameter must be one request in place, got {names}")
        for variant, spec in self.variants.items():
            if spec.output is not None and (spec.output.format or spec.output.transcode):
                name, value = ("format", spec.output.format) if spec.output.format else ("transcode", True)
                yield Problem(
                    f"{variant}.output.{name}".strip("."),
                    f"Output '{name}' parameter must not be given in place, where files keep their formats, "
                    f"got {value!r}",
                )
        if is_url(self.source) and expected_target(self.source.partition("*")[0]):
            expected = "files of folders, or objects of a bucket by a plain URL"
            yield Problem(
                "source",
                f"Batch 'source' parameter must be {expected} in place, got '{shown_url(self.source)}'",
            )
        if is_url(self.source) and self.cluster is not None:
            yield Problem("cluster", "Batch 'cluster' parameter must not be given with objects in place")

    @property
    def target(self) -> str:
        """The folder of the results or its URL. In place, this is the folder of the source, or its URL."""
        if self._target is not None:
            return self._target
        return self.source if is_url(self.source) else folder_of(self.source)

    @property
    def in_memory(self) -> bool:
        """Return True if only this process can reach the source or the target."""
        return is_in_memory(self.source) or is_in_memory(self.target)

    @property
    def naming(self) -> Template:
        """The template, or the default one."""
        return self.template or Template.default(len(self.variants))

    @property
    def manifest_path(self) -> Path:
        """The file of the manifest."""
        return self.manifest or default_manifest(self.target)

    @property
    def staging_folder(self) -> str:
        """The folder of results that are not in place yet; empty if the target is a URL."""
        # Batches with other manifests may run at the same time, and clear their own folder.
        token = hashlib.sha256(os.fsencode(self.manifest_path.absolute())).hexdigest()[:8]
        if self.in_place:  # the manifest's folder can be written, whatever the source is
            return str(self.manifest_path.absolute().with_name(f".{_MANIFEST}-{token}"))
        return "" if is_url(self.target) else os.path.join(self.target, f".{_MANIFEST}-{token}")

    def read_job(self) -> Job:
        """Read the watermarks and the pictures of layers, and return what workers need to know.

        Raises `SourceError` or `LimitExceeded` if one of them is no picture.
        """
        named = self.watermarks.items()
        layers = {
            picture.source: picture.shown
            for spec in self.variants.values()
            for picture in spec.layer_pictures.values()
            if picture.source is not None
        }
        return Job(
            variants=self.variants,
            target=self.target,
            template=self.naming,
            limits=self.limits,
            watermarks={
                **{id: _read_picture(f"Watermark '{id}'", place, self.limits) for id, place in named},
                **{place: _read_picture(shown, place, self.limits) for place, shown in layers.items()},
            },
            overwrite=self.overwrite,
            staging_folder=self.staging_folder,
            remote=is_remote(self.source) or is_remote(self.target),
            packed=is_url(self.source) and "::" in self.source,
            in_place=self.in_place,
        )

    def fingerprint(self, job: Job) -> str:
        """Return a digest of what decides what is done to each input: specs, watermarks, names, target."""
        parts = [f"{name}={spec.digest}" for name, spec in sorted(self.variants.items())]
        parts += [f"{id}={hashlib.sha256(data).hexdigest()}" for id, data in sorted(job.watermarks.items())]
        # A folder that was moved together with its manifest is the same target.
        parts += [
            "in place" if self.in_place else self.naming.text,
            "" if self.manifest is None and not is_url(self.target) else self.target,
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def reserved(self) -> frozenset[str]:
        """Return the paths of the manifest. No result may be written there."""
        return files_of(self.manifest_path)


def _read_picture(shown: str, place: str, limits: Limits) -> bytes:
    """Return the encoded picture of a watermark or layer, after decoding it once."""
    from imgsvc_core import process

    try:
        data = open_bytes(place, limits).read()
        process(data, _SMALL, limits=limits)
    except (SourceError, LimitExceeded) as error:
        error.begin_with(shown)
        raise
    return data
