"""What is to be done, checked before anything is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import attrs

from imgsvc_batch.arguments import (
    as_manifest,
    as_source,
    as_target,
    as_template,
    as_variants,
    check_limits,
    check_watermarks,
    check_workers,
    of_variant,
)
from imgsvc_batch.hands import Hands
from imgsvc_batch.manifest_file import places_of
from imgsvc_batch.naming import Template
from imgsvc_batch.places import base_of, is_of_this_process, path_from
from imgsvc_batch.work import Job
from imgsvc_core.codecs.table import by_name
from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.limits import Limits
from imgsvc_core.sources import is_url, open_bytes
from imgsvc_core.spec import Spec

_MANIFEST = "imgsvc-batch"
_SMALL = {"resize": {"width": 64, "height": 64, "upscale": False}}


def usual_manifest(target: str) -> Path:
    """Where the manifest of a target is unless somebody says so: in it; for a URL, in the current folder."""
    if is_url(target):
        return Path(f"{_MANIFEST}-{hashlib.sha256(target.rstrip('/').encode()).hexdigest()[:8]}.sqlite")
    return Path(target) / f".{_MANIFEST}.sqlite"


@attrs.frozen(kw_only=True)
class Batch:
    """What is to be done, checked before anything is.

    Attributes:
        source: a folder, a pattern with wildcards, a file, or an fsspec URL of one.
        target: a folder or an fsspec URL of one.
        variants: specs by name; each input gives one result for each.
        template: how results are named.
        manifest: the file that remembers; `usual_manifest` where nothing is said.
        workers: processes on this machine, one for each core where nothing is said.
        cluster: address of a Dask scheduler, to work there instead.
        limits: how much work one picture may cause.
        watermarks: pictures by the ids that specs use.
        overwrite: whether files that are not from this batch may be replaced.
        force: whether inputs are done again that have not changed.
    """

    source: str = attrs.field(converter=as_source)
    target: str = attrs.field(converter=as_target)
    variants: Mapping[str, Spec] = attrs.field(converter=as_variants)
    template: Template | None = attrs.field(default=None, converter=as_template)
    manifest: Path | None = attrs.field(default=None, converter=as_manifest)
    workers: int | None = attrs.field(default=None, validator=check_workers)
    cluster: str | None = None
    limits: Limits = attrs.field(factory=Limits, validator=check_limits)
    watermarks: Mapping[str, str] = attrs.field(factory=dict, validator=check_watermarks)
    overwrite: bool = False
    force: bool = False

    def __attrs_post_init__(self) -> None:
        self.naming.check(self.variants)
        problems = [
            Problem(
                f"{name}.watermark.id".strip("."),
                of_variant(
                    name,
                    "Watermark 'id' parameter must be one of the given watermarks, "
                    f"got '{spec.watermark.id}'",
                ),
            )
            for name, spec in self.variants.items()
            if spec.watermark is not None and spec.watermark.id not in self.watermarks
        ]
        if path_from(base_of(self.source)[0], self.target) == "":
            problems.append(
                Problem(
                    "target",
                    f"Batch 'target' parameter must be another folder than the source, got '{self.target}'",
                )
            )
        if self.cluster is not None and self._of_this_process:
            message = "Batch 'cluster' parameter must not be given with places in 'memory://'"
            problems.append(Problem("cluster", message))
        if problems:
            raise SpecError(problems)

    @property
    def naming(self) -> Template:
        """The template, or the usual one."""
        return self.template or Template.usual(len(self.variants))

    @property
    def manifest_path(self) -> Path:
        """Where the manifest is."""
        return self.manifest or usual_manifest(self.target)

    def job(self) -> Job:
        """The work as workers see it; `SourceError` or `LimitExceeded` for a watermark that is none."""
        return Job(
            variants=self.variants,
            target=self.target,
            template=self.naming,
            limits=self.limits,
            watermarks={id: _mark(id, place, self.limits) for id, place in self.watermarks.items()},
            overwrite=self.overwrite,
            token=hashlib.sha256(os.fsencode(self.manifest_path.absolute())).hexdigest()[:8],
            reserved=places_of(self.manifest_path),
            remote=is_url(self.source) or is_url(self.target),
        )

    @property
    def _of_this_process(self) -> bool:
        """Whether no other process can reach the source or the target."""
        return is_of_this_process(self.source) or is_of_this_process(self.target)

    def work_of(self, job: Job) -> str:
        """A digest that tells this work from other work on the same inputs."""
        parts = [f"{name}={spec.digest}" for name, spec in sorted(self.variants.items())]
        parts += [f"{id}={hashlib.sha256(data).hexdigest()}" for id, data in sorted(job.watermarks.items())]
        parts += [self.naming.text, "" if self.manifest is None and not is_url(self.target) else self.target]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def foreseen(self, key: str) -> tuple[str, ...]:
        """The paths of an input's results, as far as they are known before it is read."""
        fields = self.naming.fields
        if not fields <= {"stem", "variant", "format"}:
            return ()
        suffixes = {name: _suffix_of(spec) for name, spec in self.variants.items()}
        return tuple(
            self.naming.path(key, variant=name, width=1, height=1, suffix=suffix, digest="")
            for name, suffix in suffixes.items()
            if suffix or "format" not in fields
        )

    def hands(self, job: Job) -> Hands:
        """Whoever does the work."""
        if self._of_this_process:
            from imgsvc_batch.inside import InsideHands

            return InsideHands(job, self.workers)
        if self.cluster is not None:
            from imgsvc_batch.cluster import ClusterHands

            return ClusterHands(job, self.cluster)
        from imgsvc_batch.local import LocalHands

        return LocalHands(job, self.workers)


def _mark(id: str, place: str, limits: Limits) -> bytes:
    """The encoded picture of a watermark, found good by decoding it small."""
    from imgsvc_core.processing import naming_mark, process  # it loads libvips

    with naming_mark(id):
        data = open_bytes(place, limits).read()
        process(data, _SMALL, limits=limits)
    return data


def _suffix_of(spec: Spec) -> str:
    """How results end; nothing where that depends on the input, as for 'auto'."""
    row = by_name(spec.output.format) if spec.output is not None and spec.output.format is not None else None
    return row.suffix if row is not None else ""
