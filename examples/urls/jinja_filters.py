"""Jinja filters for Flask, FastAPI, Starlette and others: ``add_filters(app.jinja_env, Signer(...))``.

::

    {{ "photos/shoe.jpg" | picture(alt="A shoe", resize="400x300", mode="fit", sizes="50vw") }}
    <img src="{{ 'photos/shoe.jpg' | picture_url(resize='80x') }}" alt="A shoe">
"""

from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from imgsvc_urls import Signer


def add_filters(environment: Environment, signer: Signer) -> None:
    def picture(source: str, *, alt: str, **options: Any) -> Markup:
        return Markup(signer.picture(source, alt=alt, **options))

    environment.filters["picture"] = picture
    environment.filters["picture_url"] = signer.url
