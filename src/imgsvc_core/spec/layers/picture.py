"""Another picture as a layer."""

from typing import ClassVar

from imgsvc_core.sources.url_messages import shown_url
from imgsvc_core.spec.declare import Operation, declared, param
from imgsvc_core.spec.kinds import Text
from imgsvc_core.spec.rules import AtLeastOne, NotTogether, Rule


@declared
class Picture(Operation):
    """Another picture; of an animation, its first frame."""

    confidential: ClassVar[bool] = True  # URLs may hold passwords
    rules: ClassVar[tuple[Rule, ...]] = (AtLeastOne(("id", "source")), NotTogether(("id",), ("source",)))

    id: str | None = param("Id of an uploaded watermark picture.", Text(4096), default=None)
    source: str | None = param(
        "Path or URL of the picture. The service takes only URLs that its settings allow.",
        Text(4096),
        default=None,
    )

    @property
    def shown(self) -> str:
        """Return the words for messages, without secrets of a URL."""
        return f"Layer picture '{shown_url(self.id or self.source or '')}'"

    def __repr__(self) -> str:
        name, place = ("id", self.id) if self.id else ("source", self.source)
        return f"Picture({name}={shown_url(place or '')!r})"
