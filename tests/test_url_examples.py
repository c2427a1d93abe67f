"""The examples for web frameworks write URLs that the library reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jinja2
import pytest
from examples.urls.jinja_filters import add_filters

from imgsvc_core import Spec
from imgsvc_urls import OriginSource, Signer, UrlSource, parse, split, verify
from tests.support import requires

EXAMPLES = Path(__file__).parent.parent / "examples" / "urls"
BASE, SECRET = "https://img.example.org", "a secret of a signing key"
SIGNER = Signer(BASE, "k1", SECRET)
PICTURE = SIGNER.picture("photos/a b.jpg", alt='"A" shoe', resize="400x300", mode="fit", sizes="50vw")
LINK = SIGNER.url("photos/a.jpg", download=1)

DJANGO = """
import json, sys
import django
from django.conf import settings
settings.configure(
    IMGSVC=json.loads(sys.argv[1]),
    TEMPLATES=[{
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {"libraries": {"pictures": "examples.urls.django_tags"}},
    }],
)
django.setup()
from django.template import engines
print(engines["django"].from_string(sys.stdin.read()).render({"alt": '"A" shoe'}), end="")
"""


def test_django() -> None:
    template = (
        '{% load pictures %}{% picture "photos/a b.jpg" alt=alt resize="400x300" mode="fit" sizes="50vw" %}\n'
        "{% picture_url 'photos/a.jpg' download=1 %}"
    )
    signer = json.dumps({"base": BASE, "key_id": "k1", "secret": SECRET})
    shown = subprocess.check_output(
        [sys.executable, "-c", DJANGO, signer], input=template, text=True, cwd=EXAMPLES.parent.parent
    )
    assert shown == f"{PICTURE}\n{LINK}"


def test_jinja() -> None:
    environment = jinja2.Environment(autoescape=True)
    add_filters(environment, SIGNER)
    template = environment.from_string(
        "{{ 'photos/a b.jpg' | picture(alt=alt, resize='400x300', mode='fit', sizes='50vw') }}\n"
        "{{ 'photos/a.jpg' | picture_url(download=1) }}"
    )
    assert template.render(alt='"A" shoe') == f"{PICTURE}\n{LINK}"


def node(module: str, expression: str, cases: list[Any]) -> list[str]:
    """What an expression with the default export of a module, ``imported``, makes of each case."""
    code = f"""
        import imported from {json.dumps((EXAMPLES / module).as_uri())};
        const cases = JSON.parse(process.argv[1]);
        console.log(JSON.stringify(cases.map(({expression}))));
    """
    environment = {"IMGSVC_BASE": BASE, "IMGSVC_KEY_ID": "k1", "IMGSVC_SIGNING_SECRET": SECRET}
    printed = subprocess.check_output(
        [requires.program("node"), "--input-type=module", "-e", code, json.dumps(cases)],
        text=True,
        env=os.environ | environment,
    )
    found: list[str] = json.loads(printed)
    return found


def test_the_loader_for_next_signs_as_the_library_does() -> None:
    sources = ["/photos/a b.jpg", "photos/ä'(1),2.jpg", "https://example.org/a.jpg?b=c&d"]
    cases = [{"src": source, "width": 640} for source in sources]
    urls = node("next-loader.mjs", "imported", [*cases, {**cases[0], "quality": 50}])
    start = f"{BASE}/1.0/image"
    found = [parse(verify(url.removeprefix(start), {"k1": SECRET})) for url in urls]
    assert [item.source for item in found] == [
        OriginSource("photos", "a b.jpg"),
        OriginSource("photos", "ä'(1),2.jpg"),
        UrlSource("https://example.org/a.jpg?b=c&d"),
        OriginSource("photos", "a b.jpg"),
    ]
    assert [item.spec() for item in found] == [
        Spec(resize={"width": 640}, output={"quality": quality, "format": "auto"})
        for quality in (75, 75, 75, 50)
    ]


@pytest.mark.parametrize(
    ("modifiers", "presets"),
    [
        ({}, ()),
        ({"width": 400}, ("w400",)),
        ({"preset": "card"}, ("card",)),
        ({"preset": ["card", "old"], "width": 400}, ("card", "old", "w400")),
    ],
)
def test_the_provider_for_nuxt(modifiers: dict[str, Any], presets: tuple[str, ...]) -> None:
    given = ["/photos/a b.jpg", {"modifiers": modifiers, "baseURL": BASE}]
    (url,) = node("nuxt-provider.mjs", "([src, given]) => imported().getImage(src, given).url", [given])
    signed = split(url.removeprefix(f"{BASE}/1.0/image"))
    found = parse(signed.text)
    assert signed.key_id is None
    assert (found.source, found.presets) == (OriginSource("photos", "a b.jpg"), presets)
    assert not found.options  # which unsigned URLs may not have
