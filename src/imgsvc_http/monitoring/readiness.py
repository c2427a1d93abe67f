"""Reasons why the service does not accept requests. Each is logged once."""

from __future__ import annotations

import logging

import attrs

_log = logging.getLogger(__name__)


@attrs.frozen
class Obstacle:
    """Why no requests are accepted: the reason for clients, and what only the operator is told."""

    reason: str
    remedy: str = ""


@attrs.define
class Readiness:
    """Logs when probes begin to fail, when they fail for another reason, and when they succeed again."""

    _obstacle: Obstacle | None = None

    def note(self, obstacle: Obstacle | None) -> None:
        """Log what a probe found, unless the one before has found the same."""
        before, self._obstacle = self._obstacle, obstacle
        if obstacle is not None and obstacle != before:
            _log.error("Not ready, because %s. %s", obstacle.reason, obstacle.remedy)
        elif obstacle is None and before is not None:
            _log.warning("Ready again.")
