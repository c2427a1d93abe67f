"""Declarations of settings: reading them from files, variables and flags, and writing them.

A section is a frozen attrs class. Its fields are made by `setting`, or have ``doc`` and ``unit`` in their
metadata as the limits of the library have.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote_plus

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.errors import Problem
from imgsvc_core.spec.declaring import Boolean, Integer, Number
from imgsvc_http.settings.dialects import OF_ALL, Dialects
from imgsvc_http.settings.kinds import NONE, Kind, Many, Maybe, Url
from imgsvc_http.settings.origins import Origins
from imgsvc_http.settings.problems import wrong_setting

MASK = "********"
_METADATA_KEY = "imgsvc_setting"
_PASSWORD = re.compile(r"(://[^/?#:@]*:)(?:[^/?#]*|[^@]*)@")  # those of databases may have slashes
_PARAMETER = re.compile(r"(?<=[?&])([^=&]+)=[^&]+")
_SECRET_NAME = re.compile("pass|pwd|secret|token|key|sig|auth|credential", re.IGNORECASE)


@attrs.frozen(kw_only=True)
class Setting:
    """The declaration of a setting. The value of a ``secret`` one is never shown."""

    path: str = ""
    kind: Kind
    doc: str
    unit: str | None = None
    secret: bool = False

    @property
    def variable(self) -> str:
        """The environment variable of the setting."""
        return "IMGSVC_" + self.path.replace(".", "_").upper()

    def parse(self, value: object, origin: str) -> Any:
        """Return the value in its Python form; raise `SpecError` with its origin if it is not accepted."""
        if self.secret and MASK in str(value):
            raise wrong_setting(self.path, f"must be the secret itself, got its mask in {origin}")
        try:
            return self.kind.parse(value)
        except ValueError:
            came = "another value" if self.secret else _without_secrets(shown(value))
            raise wrong_setting(
                self.path, f"must be {self.kind.expectation}, got {came} in {origin}"
            ) from None

    def masked(self, value: Any) -> Any:
        """Return the plain form of a value, with passwords and tokens masked."""
        plain = self.kind.unparse(value)
        return _masked(self.kind, plain) if self.secret else plain


def setting(
    kind: Kind,
    doc: str,
    *,
    default: Any = attrs.NOTHING,
    factory: Callable[[], Any] | None = None,
    unit: str | None = None,
    secret: bool = False,
) -> Any:
    """Declare a setting as a field of a section."""
    declared = Setting(kind=kind, doc=doc, unit=unit, secret=secret)
    return attrs.field(
        default=attrs.Factory(factory) if factory else default,
        converter=attrs.Converter(_convert, takes_field=True),
        repr=(lambda value: repr(declared.masked(value))) if secret else True,
        metadata={_METADATA_KEY: declared},
    )


def settings_of(section: str, cls: type) -> dict[str, Setting]:
    """Return the settings of a section by name, in the order of declaration."""
    return {
        field.name: attrs.evolve(_declared(field), path=f"{section}.{field.name}")
        for field in attrs.fields(cls)
    }


def from_text(kind: Kind, text: str) -> object:
    """Return the value that a text in a variable or flag stands for. Unsuitable text is left as it is."""
    match kind:
        case Maybe():
            return text if text == NONE else from_text(kind.kind, text)
        case Boolean():
            return {"true": True, "false": False}.get(text.lower(), text)
        case Integer() | Number():
            try:
                return _number(text, float if isinstance(kind, Number) else int)
            except ValueError:
                return text
        case Origins():
            return _from_json(text)
        case Dialects():
            return _from_json(text) if text.lstrip()[:1] in ("[", "{") else text.split(",")
        case Many():
            if text.lstrip().startswith("["):
                return _from_json(text)
            return [from_text(kind.kind, item.strip()) for item in text.split(",") if item.strip()]
        case _:
            return text


def without_newline(text: str) -> str:
    """Return a text without the newline at its end, which secrets in files have."""
    return text.removesuffix("\n").removesuffix("\r")


def _from_json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def toml_value(value: Any) -> str:
    """Return a plain value in TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def unknown(what: str, key: str, known: Iterable[str], origin: str) -> Problem:
    """Return the problem of an unknown section, key or variable, with the most similar known one."""
    from difflib import get_close_matches

    near = get_close_matches(key, list(known), n=1)
    advice = f"did you mean '{near[0]}'?" if near else "see imgsvc serve --print-config for all"
    key, origin = _without_secrets(key), _without_secrets(origin)
    return Problem(key, f"There is no {what} '{key[:80]}', found in {origin}; {advice}")


def flattened(document: Mapping[str, Any], sections: Iterable[str]) -> dict[str, Any]:
    """Return the values of a TOML document by path; anything else than a known section keeps its key."""
    found: dict[str, Any] = {}
    for section, values in document.items():
        if section in sections and isinstance(values, Mapping):
            found |= {f"{section}.{name}": value for name, value in values.items()}
        else:
            found[section] = values
    return found


def _number(text: str, read: Callable[[str], float]) -> float:
    """Read a number in ASCII, without the underscores and spaces that Python accepts."""
    if not text.isascii() or re.search(r"[\s_]", text):
        raise ValueError(text)
    return read(text)


def _convert(value: Any, field: attrs.Attribute[Any]) -> Any:
    declared = attrs.evolve(_declared(field), path=field.name)
    return declared.parse(value, "the arguments")


def _declared(field: attrs.Attribute[Any]) -> Setting:
    if _METADATA_KEY in field.metadata:
        found: Setting = field.metadata[_METADATA_KEY]
        return found
    unit = field.metadata["unit"]
    kind: Kind = Number(math.ulp(0.0), 10**9) if unit == "s" else Integer(1, 10**15)
    return Setting(kind=Maybe(kind), doc=field.metadata["doc"], unit=unit)


def _masked(kind: Kind, plain: Any) -> Any:
    if isinstance(kind, Many):
        return [_masked(kind.kind, item) for item in plain]
    if isinstance(kind, Origins):
        return {name: _masked_origin(item) for name, item in plain.items()}
    if isinstance(kind, Dialects):
        return {  # all settings that are a dialect's own may be secret
            name: {key: value if key in OF_ALL else MASK for key, value in item.items()}
            for name, item in plain.items()
        }
    if isinstance(kind, Url):
        return _without_secrets(plain)
    return MASK if plain else plain


def _masked_origin(plain: str | Mapping[str, Any]) -> Any:
    """Return an origin with its URL; all options of its file system may be secret."""
    if isinstance(plain, str):
        return _without_secrets(plain)
    return {name: _without_secrets(value) if name == "url" else MASK for name, value in plain.items()}


def _without_secrets(url: str) -> str:
    return _PARAMETER.sub(_masked_parameter, _PASSWORD.sub(rf"\1{MASK}@", url))


def _masked_parameter(found: re.Match[str]) -> str:
    return f"{found[1]}={MASK}" if _SECRET_NAME.search(unquote_plus(found[1])) else found[0]
