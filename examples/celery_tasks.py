"""The library in tasks of Celery, in processes or in green threads:

``celery -A examples.celery_tasks worker``
``celery -A examples.celery_tasks worker --pool gevent``
"""

from __future__ import annotations

import os

from celery import Celery

import imgsvc_core as imgsvc

REDIS = os.environ.get("REDIS_URL", "redis://localhost")
app = Celery("pictures", broker=REDIS, backend=REDIS)


@app.task
def thumbnail(source: str, target: str, seconds: float = 30) -> str:
    """Make a thumbnail. Return its size, or the name of what is wrong with the picture."""
    try:
        result = imgsvc.process(
            source, imgsvc.Resize(width=256), target, limits=imgsvc.Limits(seconds=seconds), threads=1
        )
    except imgsvc.ImgsvcError as error:
        return error.slug
    return f"{result.output.width}x{result.output.height}"
