"""The work of ``imgsvc process``: one job for each source, with the place of its result."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

import imgsvc_core as imgsvc
from imgsvc_cli import standard_streams
from imgsvc_cli.printing import size
from imgsvc_core.errors import TargetError, invalid_id, os_reason
from imgsvc_core.sources import is_url, shown_url
from imgsvc_core.targets import name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from imgsvc_cli.stores import StoreTarget

_PIPE = "-"
_LINKED = "Its other hard links still lead to the original."


@attrs.frozen
class Done:
    """A result and where it is: ``target`` is a path or fsspec URL, ``url`` the address in a store.

    ``name`` is the name of the file, if the result does not know it. ``notes`` are further ones.
    """

    result: imgsvc.Result
    target: str | None = None
    url: str | None = None
    name: str = ""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON values."""
        target = None if self.target is None else shown_url(self.target)
        facts = {"target": target, **self.result.to_dict()}
        facts["notes"] += self.notes
        if self.name:
            facts["output"]["name"] = self.name
        if self.url is not None:
            facts["output"]["url"] = self.url
        return facts


@attrs.frozen
class Job:
    """One source and its target; without a target the result is named after the source and its format."""

    source: str
    target: str | None
    folder: str | None
    force: bool
    in_place: bool = False
    store: StoreTarget | None = None

    @property
    def piped(self) -> bool:
        """Return True if the result goes to standard output."""
        return self.target == _PIPE

    @property
    def shown(self) -> str:
        """Return the source for messages, with the bytes of its name that are not UTF-8 as escapes."""
        if self.source == _PIPE:
            return "standard input"
        return os.fsencode(shown_url(self.source)).decode("utf-8", "backslashreplace")

    @property
    def label(self) -> str:
        """Return the name of the source for messages."""
        return "standard input" if self.source == _PIPE else Path(shown_url(self.source)).name

    @property
    def stem(self) -> str:
        """Return the name of the result without its suffix."""
        return "image" if self.source == _PIPE else Path(shown_url(self.source)).stem

    def place(self, suffix: str) -> str:
        """Return the place of a result without a target: in the folder or the store, or beside its source."""
        name = f"{self.stem}{suffix}"
        if self.store is not None:
            return name
        if self.folder is not None:
            folder = self.folder
            return f"{folder.rstrip('/')}/{name}" if is_url(folder) else str(Path(folder) / name)
        return name if is_url(self.source) else str(Path(self.source).parent / f"{self.stem}-out{suffix}")

    def summary(self, done: Done) -> str:
        """Return one line about the result."""
        result = done.result
        before, after = result.input, result.output
        saved = f"{(after.bytes - before.bytes) / before.bytes:+.0%}" if before.bytes else ""
        seconds = sum(attrs.astuple(result.timing)) / 1000
        width, height = before.upright_size
        where = done.url or done.name or after.name or "standard output"
        return (
            f"{self.label} {width}x{height} {size(before.bytes)} -> {where} "
            f"{after.width}x{after.height} {size(after.bytes)} ({saved}), {seconds:.2f} s"
        )


def plan_jobs(
    sources: tuple[str, ...],
    target: str | None,
    request: imgsvc.Spec,
    *,
    force: bool,
    in_place: bool = False,
    store: StoreTarget | None = None,
) -> list[Job]:
    """Return one job for each source.

    Raises:
        TargetError: several results would go to the same file or object, or a source is no file that can be
            replaced.
    """
    if in_place:
        for source in sources:
            if source == _PIPE or is_url(source):
                raise TargetError(f"Source '{shown_url(source)}' must be a file with --in-place.")
        return [Job(source, None, None, force, in_place=True) for source in sources]
    if store is not None and len(sources) > 1 and not store.is_folder:
        raise TargetError(f"Store path '{store.spec.path}' must end in a slash for {len(sources)} sources.")
    folder = target if target is not None and _is_folder(target) else None
    if target is not None and folder is None and len(sources) > 1:
        raise TargetError(f"Target '{target}' must be a folder for {len(sources)} sources, got a file.")
    if folder is None and store is None and sources == (_PIPE,):
        target = target or _PIPE
    jobs = [Job(source, target if folder is None else None, folder, force, store=store) for source in sources]
    _check_names(jobs, request)
    return jobs


def run_job(job: Job, request: imgsvc.Spec, limits: imgsvc.Limits) -> Done:
    """Process one source. An existing file is replaced only if it was named, or with ``--force``."""
    process = partial(imgsvc.process, limits=limits, watermarks=watermark_place)
    target: Any = standard_streams.output() if job.piped else job.target
    source = standard_streams.opened(job.source)
    if job.store is not None:
        result = process(source, request)
        return Done(result, url=job.store.write(result, job.stem))
    if job.in_place:
        from imgsvc_batch.own_format import in_own_format

        return _replace(job, in_own_format(request, imgsvc.inspect(source, limits=limits)), process)
    if target is not None:
        _check_not_source(job)
        return Done(process(source, request, target), job.target)
    formats = _formats(request, imgsvc.inspect(source, limits=limits))
    if len(formats) == 1:
        path = _free_place(job, formats[0])
        return Done(process(source, request, path), path)
    result = process(source, request)
    path = _free_place(job, imgsvc.FORMATS[result.output.format])
    result.save(path)
    return Done(result, path, name=name_of(path))


def _replace(job: Job, request: imgsvc.Spec, process: Callable[..., imgsvc.Result]) -> Done:
    """Replace the source by its result."""
    is_linked = os.stat(job.source).st_nlink > 1
    before = os.stat(job.source).st_ino
    result = process(job.source, request, job.source)
    notes = (_LINKED,) if is_linked and os.stat(job.source).st_ino != before else ()
    return Done(result, job.source, notes=notes)


def _is_folder(target: str) -> bool:
    return target.endswith("/") or (not is_url(target) and os.path.isdir(target))


def _check_names(jobs: list[Job], request: imgsvc.Spec) -> None:
    """Refuse two results with the same name; only sources whose names differ in suffixes alone are read."""
    same_stem: dict[str, list[Job]] = {}
    for job in jobs:
        same_stem.setdefault(_resolved(job.place("")), []).append(job)
    for several in same_stem.values():
        taken: dict[str, str] = {}
        for job in several if len(several) > 1 else ():
            suffixes = [format.suffix for format in _possible_formats(job, request)]
            for suffix in suffixes:
                if suffix in taken:
                    both = f"'{shown_url(taken[suffix])}' and '{shown_url(job.source)}'"
                    raise TargetError(
                        f"The results of {both} would both be named "
                        f"'{job.place(suffix)}'; rename one of them, or process them one by one."
                    )
            taken |= dict.fromkeys(suffixes, job.source)


def _resolved(place: str) -> str:
    """Return a place with the links in its folder resolved."""
    if is_url(place):
        return place
    folder, name = os.path.split(place)
    return os.path.join(os.path.realpath(folder), name)


def _possible_formats(job: Job, request: imgsvc.Spec) -> Collection[type[imgsvc.Format]]:
    if job.source == _PIPE:  # can be read only once
        return imgsvc.FORMATS.values()
    try:
        return _formats(request, imgsvc.inspect(job.source))
    except imgsvc.ImgsvcError:  # the job will fail
        return ()


def _formats(request: imgsvc.Spec, info: imgsvc.ImageInfo) -> list[type[imgsvc.Format]]:
    """Return the formats that the result may have."""
    plan = imgsvc.explain(request, info, limits=imgsvc.Limits.none())
    return [imgsvc.FORMATS[settings.format] for settings in (*plan.save, *plan.save_exactly)]


def _free_place(job: Job, format: type[imgsvc.Format]) -> str:
    """Return the place of the job's result, whose folder is created; refuse to replace a file."""
    place = job.place(format.suffix)
    if is_url(place):
        return place
    if job.folder is not None:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
    if os.path.exists(place) and not job.force:
        raise TargetError(f"Target '{place}' exists already; name it with -o, or use --force to replace it.")
    return place


def _check_not_source(job: Job) -> None:
    """Refuse to replace the source itself, under any of its names."""
    target = job.target
    assert target is not None
    if job.force or job.piped or is_url(target) or is_url(job.source):
        return
    if os.path.exists(target) and os.path.exists(job.source) and os.path.samefile(target, job.source):
        raise TargetError(f"Target '{target}' is the source itself; use --force to replace it.")


def watermark_place(name: str, path: str = "watermark.id") -> str:
    """Return the path or URL of a watermark, which is its id, too. The request has the id at ``path``.

    Raises:
        SpecError: there is no such file.
    """
    if not (fault := why_no_picture(name)):
        return name
    raise invalid_id(path, "must be the path or URL of a picture", f"'{name}' {fault}")


def why_no_picture(name: str) -> str:
    """Return why a name cannot be the path or the URL of a picture, or nothing."""
    if is_url(name):
        return ""
    try:
        return "" if stat.S_ISREG(os.stat(name).st_mode) else "is no file"
    except FileNotFoundError:
        return "does not exist"
    except (OSError, ValueError) as error:  # a zero character is the latter
        return f"cannot be read: {os_reason(error)}"
