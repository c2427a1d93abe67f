"""Django template tags: copy this file to ``templatetags/pictures.py`` of an application.

::

    {% load pictures %}
    {% picture "photos/shoe.jpg" alt="A shoe" resize="400x300" mode="fit" sizes="50vw" %}
    <a href="{% picture_url 'photos/shoe.jpg' download=1 %}">Save</a>

``settings.IMGSVC`` holds the arguments of `Signer`: ``{"base": ..., "key_id": ..., "secret": ...}``.
"""

from typing import Any

from django import template
from django.conf import settings
from django.utils.safestring import SafeString, mark_safe

from imgsvc_urls import Signer

register = template.Library()
signer = Signer(**settings.IMGSVC)


@register.simple_tag
def picture(source: str, *, alt: str, **options: Any) -> SafeString:
    return mark_safe(signer.picture(source, alt=alt, **options))


@register.simple_tag
def picture_url(source: str, **options: Any) -> str:
    return signer.url(source, **options)
