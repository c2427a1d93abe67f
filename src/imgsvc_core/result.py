"""What processing gives back."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import attrs

from imgsvc_core.faces import Face
from imgsvc_core.info import ImageInfo
from imgsvc_core.plan import Plan


@attrs.frozen(kw_only=True)
class Timing:
    """Milliseconds that each part of the work took.

    Pixels flow through decoder, steps and encoder together; what could not be told apart is in ``encode``.
    """

    decode: float
    process: float
    encode: float


@attrs.frozen(kw_only=True)
class Result:
    """A processed picture: facts of the source and the result, and the bytes unless they went to a target."""

    input: ImageInfo
    data: bytes | None = attrs.field(repr=False)
    faces: tuple[Face, ...] | None = None
    timing: Timing
    plan: Plan = attrs.field(repr=False)
    _output: ImageInfo | Callable[[], ImageInfo] = attrs.field(repr=False, eq=False)

    @cached_property
    def output(self) -> ImageInfo:
        """Facts of the result, from its header; read when they are first asked for, where it is in memory."""
        return self._output if isinstance(self._output, ImageInfo) else self._output()

    def to_dict(self) -> dict[str, Any]:
        """Everything but the bytes and the plan, as JSON values."""
        output = self.output.to_dict()
        if self.faces is not None:
            output["faces"] = [attrs.asdict(face) for face in self.faces]
        return {"input": self.input.to_dict(), "output": output, "timing": attrs.asdict(self.timing)}
