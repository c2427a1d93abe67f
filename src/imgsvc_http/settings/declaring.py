"""Sections of settings: how they are declared, read from files, variables and flags, and written.

A section is a frozen attrs class whose fields are made by `setting`, or which carry ``doc`` and ``unit`` in
their metadata as the core's limits do. Everything else reads the declarations.
"""

from __future__ import annotations

import difflib
import ipaddress
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote_plus, urlsplit

import attrs
from yarl import URL

from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.jsontext import shown
from imgsvc_core.spec.kinds import Boolean, Integer, Number

MASK = "********"
_METADATA_KEY = "imgsvc_setting"
_NONE = "none"
_WEB = ("http", "https")
_PASSWORD = re.compile(r"(://[^/?#:@]*:)(?:[^/?#]*|[^@]*)@")  # databases take slashes in it as well
_PARAMETER = re.compile(r"(?<=[?&])([^=&]+)=[^&]+")
_SECRET_NAME = re.compile("pass|pwd|secret|token|key|sig|auth|credential", re.IGNORECASE)
_HOST_NAME = re.compile(r"[\w-]{1,63}(\.[\w-]{1,63})*\.?")


class Kind(Protocol):
    """What a setting accepts; the kinds of parameters of requests fit as well."""

    @property
    def expectation(self) -> str:
        """The words after "must be" in an error message."""

    def parse(self, value: object) -> Any:
        """The value in its Python form; `ValueError` where it is not acceptable."""

    def unparse(self, value: Any) -> Any:
        """The plain form of a parsed value: string, number, boolean, or a list of them."""


@attrs.frozen
class Matching:
    """A string of a form that ``words`` describe; the empty string is fine where ``optional``."""

    pattern: str
    words: str
    optional: bool = False

    @property
    def expectation(self) -> str:
        return self.words + (" or empty" if self.optional else "")

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not (
            re.fullmatch(self.pattern, value) or (self.optional and value == "")
        ):
            raise ValueError(value)
        return value

    def unparse(self, value: str) -> str:
        return value


@attrs.frozen
class FilePath:
    """Path of a file or folder, with ``~`` for the home folder; empty is ``None`` where ``optional``."""

    optional: bool = False

    @property
    def expectation(self) -> str:
        return "path of a file or folder" + (" or empty" if self.optional else "")

    def parse(self, value: object) -> Path | None:
        if self.optional and (value is None or value == ""):
            return None
        if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
            raise ValueError(value)
        return Path(value).expanduser()

    def unparse(self, value: Path | None) -> str:
        return "" if value is None else str(value)


@attrs.frozen
class Url:
    """A URL of one of some schemes, of any scheme where none is named; empty is fine where ``optional``.

    It has to hold the text ``holding``. A ``bare`` one has neither credentials nor query nor fragment.
    """

    schemes: tuple[str, ...] = ()
    optional: bool = False
    holding: str = ""
    bare: bool = False

    @property
    def expectation(self) -> str:
        heads = f" that begins with {' or '.join(f'{name}://' for name in self.schemes)}"
        held = f" and holds {self.holding}" if self.holding else ""
        bare = ", without credentials, query and fragment," if self.bare else ""
        return "URL" + (heads if self.schemes else "") + held + bare + (" or empty" if self.optional else "")

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not (value or self.optional) or re.search(r"[\x00-\x20\x7f]", value):
            raise ValueError(value)
        scheme, colon, _ = value.partition("://")
        if value and (not colon or (self.schemes and scheme not in self.schemes)):
            raise ValueError(value)
        if value and (self.holding not in value or (scheme in _WEB and not URL(value).raw_host)):
            raise ValueError(value)
        if self.bare and ("@" in urlsplit(value).netloc or "?" in value or "#" in value):
            raise ValueError(value)
        urlsplit(value)
        return value

    def unparse(self, value: str) -> str:
        return value


@attrs.frozen
class Replacement:
    """``name=URL`` with one of some names."""

    names: tuple[str, ...]
    url: Url

    @property
    def expectation(self) -> str:
        return f"name={self.url.expectation}, whose name is one of {', '.join(self.names)}"

    def parse(self, value: object) -> str:
        if not isinstance(value, str):
            raise ValueError(value)
        name, _, url = value.partition("=")
        if name not in self.names:
            raise ValueError(value)
        self.url.parse(url)
        return value

    def unparse(self, value: str) -> str:
        return value


@attrs.frozen
class Network:
    """An address or a network in CIDR notation, as an `ipaddress` network."""

    expectation = "address or network such as 10.0.0.0/8"

    def parse(self, value: object) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        if isinstance(value, ipaddress.IPv4Network | ipaddress.IPv6Network):
            return value
        if not isinstance(value, str):
            raise ValueError(value)
        return ipaddress.ip_network(value)

    def unparse(self, value: object) -> str:
        return str(value)


@attrs.frozen
class Host:
    """A host name, or an address or network in CIDR notation, as text."""

    expectation = "host name, address or network such as 10.0.0.0/8"

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or len(value) > 253:
            raise ValueError(value)
        # The last part of a name is no number, so that no mistaken address is taken for one.
        if not _HOST_NAME.fullmatch(value) or value.rstrip(".").rpartition(".")[2].isdigit():
            ipaddress.ip_network(value, strict=False)
        return value

    def unparse(self, value: str) -> str:
        return value


@attrs.frozen
class Many:
    """A list of values of a kind, as a tuple; in a variable or flag separated by commas, or a JSON array."""

    kind: Kind
    most: int | None = None

    @property
    def expectation(self) -> str:
        length = "" if self.most is None else f" of at most {self.most} items"
        return f"list{length} whose items are each {self.kind.expectation}"

    def parse(self, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or (self.most is not None and len(value) > self.most):
            raise ValueError(value)
        return tuple(self.kind.parse(item) for item in value)

    def unparse(self, value: Iterable[Any]) -> list[Any]:
        return [self.kind.unparse(item) for item in value]


@attrs.frozen
class Maybe:
    """A value of a kind, or ``"none"`` for `None`."""

    kind: Kind

    @property
    def expectation(self) -> str:
        return f'{self.kind.expectation} or "{_NONE}"'

    def parse(self, value: object) -> Any:
        return None if value is None or value == _NONE else self.kind.parse(value)

    def unparse(self, value: Any) -> Any:
        return _NONE if value is None else self.kind.unparse(value)


@attrs.frozen(kw_only=True)
class Setting:
    """What is known of one setting; ``secret`` ones never show their value."""

    path: str = ""
    kind: Kind
    doc: str
    unit: str | None = None
    secret: bool = False

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "IMGSVC_" + self.path.replace(".", "_").upper()

    def parse(self, value: object, origin: str) -> Any:
        """The value in its Python form; `SpecError` with a sentence that names where it came from."""
        if self.secret and MASK in str(value):
            raise self._wrong(f"must be the secret itself, got its mask in {origin}")
        try:
            return self.kind.parse(value)
        except ValueError:
            came = "another value" if self.secret else shown(value)
            raise self._wrong(f"must be {self.kind.expectation}, got {came} in {origin}") from None

    def masked(self, value: Any) -> Any:
        """The plain form of a value, for people: no password, no token."""
        plain = self.kind.unparse(value)
        return _masked(self.kind, plain) if self.secret else plain

    def _wrong(self, how: str) -> SpecError:
        return SpecError([Problem(self.path, f"Setting '{self.path}' {how}")])


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
    """The declared settings of a section by name, in the order of declaration."""
    return {
        field.name: attrs.evolve(_declared(field), path=f"{section}.{field.name}")
        for field in attrs.fields(cls)
    }


def from_text(kind: Kind, text: str) -> object:
    """The value that a text in a variable or flag stands for; text that fits nothing stays as it is."""
    match kind:
        case Maybe():
            return text if text == _NONE else from_text(kind.kind, text)
        case Boolean():
            return {"true": True, "false": False}.get(text.lower(), text)
        case Integer() | Number():
            try:
                return _number(text, float if isinstance(kind, Number) else int)
            except ValueError:
                return text
        case Many():
            if text.lstrip().startswith("["):
                try:
                    return json.loads(text)
                except ValueError:
                    return text
            return [from_text(kind.kind, item.strip()) for item in text.split(",") if item.strip()]
        case _:
            return text


def toml_value(value: Any) -> str:
    """A plain value in TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def unknown(what: str, key: str, known: Iterable[str], origin: str) -> Problem:
    """The problem of a section, key or variable that nothing is known of, with the likeliest meant one."""
    near = difflib.get_close_matches(key, list(known), n=1)
    advice = f"did you mean '{near[0]}'?" if near else "see imgsvc serve --print-config for all"
    return Problem(key, f"There is no {what} '{key[:80]}', found in {origin}; {advice}")


def flattened(document: Mapping[str, Any], sections: Iterable[str]) -> dict[str, Any]:
    """The values of a TOML document by path; what is no table of a known section stays under its key."""
    found: dict[str, Any] = {}
    for section, values in document.items():
        if section in sections and isinstance(values, Mapping):
            found |= {f"{section}.{name}": value for name, value in values.items()}
        else:
            found[section] = values
    return found


def _number(text: str, read: Callable[[str], float]) -> float:
    """The number that a text is in ASCII, without the underscores and spaces that Python takes as well."""
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
    if isinstance(kind, Url):
        return _without_secrets(plain)
    return MASK if plain else plain


def _without_secrets(url: str) -> str:
    return _PARAMETER.sub(_masked_parameter, _PASSWORD.sub(rf"\1{MASK}@", url))


def _masked_parameter(found: re.Match[str]) -> str:
    return f"{found[1]}={MASK}" if _SECRET_NAME.search(unquote_plus(found[1])) else found[0]
