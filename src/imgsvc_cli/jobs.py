"""What goes from where to where."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

import imgsvc_core as imgsvc
from imgsvc_cli.outcome import size
from imgsvc_core.errors import TargetError
from imgsvc_core.plan.encoding import candidates
from imgsvc_core.sources import is_url
from imgsvc_core.spec import Output

if TYPE_CHECKING:
    from imgsvc_cli.storing import Destination

_PIPE = "-"


@attrs.frozen
class Done:
    """A result, and its URL where it went to a store."""

    result: imgsvc.Result
    url: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The facts as JSON values."""
        facts = self.result.to_dict()
        if self.url is not None:
            facts["output"]["url"] = self.url
        return facts


@attrs.frozen
class Job:
    """One source and its target; a target of ``None`` is named after the source and its format."""

    source: str
    target: str | None
    folder: str | None
    force: bool
    store: Destination | None = None

    @property
    def piped(self) -> bool:
        """Whether the result goes to standard output."""
        return self.target == _PIPE

    @property
    def label(self) -> str:
        """The name of the source for people."""
        return "standard input" if self.source == _PIPE else Path(self.source).name

    @property
    def stem(self) -> str:
        """The name of the result without its suffix."""
        return "image" if self.source == _PIPE else Path(self.source).stem

    def summary(self, done: Done) -> str:
        """One line about what was done."""
        result = done.result
        before, after = result.input, result.output
        saved = f"{(after.bytes - before.bytes) / before.bytes:+.0%}" if before.bytes else ""
        seconds = sum(attrs.astuple(result.timing)) / 1000
        width, height = before.upright_size
        where = done.url or after.name or "standard output"
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
    store: Destination | None = None,
) -> list[Job]:
    """One job for each source.

    Raises:
        TargetError: several sources would go to one file, or object.
    """
    if store is not None:
        if len(sources) > 1 and not store.folder:
            path = store.spec.path
            raise TargetError(f"Store path '{path}' must end in a slash for {len(sources)} sources.")
        jobs = [Job(source, None, None, force, store) for source in sources]
        _check_names(jobs, request)
        return jobs
    into_folder = target is not None and (
        target.endswith("/") or (not is_url(target) and Path(target).is_dir())
    )
    if target is not None and not into_folder and len(sources) > 1:
        raise TargetError(f"Target '{target}' must be a folder for {len(sources)} sources, got a file.")
    if into_folder:
        return [Job(source, None, target, force) for source in sources]
    default = _PIPE if sources == (_PIPE,) and target is None else target
    return [Job(source, default, None, force) for source in sources]


def _check_names(jobs: list[Job], request: imgsvc.Spec) -> None:
    """Refuse two results of one name. Only where names are alike but for their suffixes are sources read."""
    alike = {stem: [job for job in jobs if job.stem == stem] for stem in {job.stem for job in jobs}}
    for stem, several in alike.items():
        taken: dict[str, str] = {}
        for job in several if len(several) > 1 else ():
            suffixes = _suffixes(job, request)
            for suffix in suffixes:
                if suffix in taken:
                    raise TargetError(
                        f"The results of '{taken[suffix]}' and '{job.source}' would both be named "
                        f"'{stem}{suffix}' in the store; rename one of them, or store them one by one."
                    )
            taken |= dict.fromkeys(suffixes, job.source)


def _suffixes(job: Job, request: imgsvc.Spec) -> list[str]:
    """The suffixes that a result may have; any where the source cannot be looked at before its turn."""
    try:
        info = None if job.source == _PIPE else imgsvc.inspect(job.source)
    except imgsvc.ImgsvcError:
        return []  # it will fail in its turn
    formats = imgsvc.FORMATS.values() if info is None else candidates(request.output or Output(), info)
    return [format.suffix for format in formats]


def run_job(job: Job, request: imgsvc.Spec) -> Done:
    """Do the job. An existing file is replaced only where it was named, or with ``--force``."""
    source: Any = sys.stdin.buffer.read() if job.source == _PIPE else job.source
    if job.store is not None:
        result = imgsvc.process(source, request, watermarks=_watermark)
        return Done(result, job.store.write(result, job.stem))
    target: Any = sys.stdout.buffer if job.piped else job.target or _named(job, source, request)
    return Done(imgsvc.process(source, request, target, watermarks=_watermark))


def _named(job: Job, source: Any, request: imgsvc.Spec) -> str:
    """The folder's or the source's place, with the suffix of the format that the result will have."""
    info = imgsvc.inspect(source)
    suffix = candidates(request.output or Output(), info)[0].suffix
    stem = job.stem
    if job.folder is not None and is_url(job.folder):
        return f"{job.folder.rstrip('/')}/{stem}{suffix}"
    if job.folder is not None:
        path = Path(job.folder) / f"{stem}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
    elif is_url(job.source):
        path = Path(f"{stem}{suffix}")
    else:
        path = Path(job.source).with_name(f"{stem}-out{suffix}")
    if path.exists() and not job.force:
        raise TargetError(f"Target '{path}' exists already; name it with -o, or use --force to replace it.")
    return str(path)


def _watermark(name: str) -> str | None:
    return name if is_url(name) or Path(name).is_file() else None
