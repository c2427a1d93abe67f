"""Requests in flight, which are given up when the service can wait for them no longer."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
from aiohttp import web

from imgsvc_http.answering.errors import Refusal, refusal


class InFlight:
    """The requests that are handled, including those whose clients have gone."""

    def __init__(self) -> None:
        self._requests: dict[asyncio.Task[Any], web.Request] = {}
        self._given_up: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._requests)

    def begin(self, request: web.Request) -> asyncio.Task[Any]:
        """Note that the present task handles a request. Return the task."""
        task = asyncio.current_task()
        assert task is not None
        self._requests[task] = request
        return task

    def end(self, task: asyncio.Task[Any]) -> None:
        """Note that a task has handled its request."""
        del self._requests[task]
        self._given_up.discard(task)

    def give_up(self) -> None:
        """Cancel all requests that are not being answered yet, and stop reading their bodies."""
        for task, request in self._requests.items():
            if request.writer.output_size == 0 and task not in self._given_up:
                if not request.content.is_eof():
                    request.content.set_exception(shutting_down())
                self._given_up.add(task)
                task.cancel()

    def goes_on(self, task: asyncio.Task[Any]) -> bool:
        """Return True if a task was cancelled to give its request up, and for nothing else."""
        return task in self._given_up and task.uncancel() == 0


def shutting_down() -> Refusal:
    """Return the error of a request that was given up."""
    refused = refusal("not_ready", reason="it is shutting down")
    return attrs.evolve(refused, headers={**refused.headers, "Connection": "close"})
