"""What the service adds to the library's request."""

import re
from typing import Any, ClassVar, Literal

import attrs
from yarl import URL

from imgsvc_core.spec.declaring import Integer, Kind, Operation, Text, declared, param
from imgsvc_http.fetching.urls import is_web


@attrs.frozen
class WebAddress(Kind):
    """An http or https URL by RFC 3986, with a host."""

    expectation = "URL valid under RFC 3986 that starts with http:// or https://"

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or len(value) > 8192 or not _URL.fullmatch(value):
            raise ValueError(value)
        if not is_web(URL(value)):  # which itself refuses ports that are too large, for example
            raise ValueError(value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "uri", "maxLength": 8192, "pattern": f"^{_URL.pattern}$"}


_PORT = "6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{1,4}"
_URL = re.compile(
    r"[Hh][Tt][Tt][Pp][Ss]?://"
    r"(?:(?:[A-Za-z0-9\-._~!$&'()*+,;=:]|%[0-9A-Fa-f]{2})*@)?"  # user and password
    r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?)"
    rf"(?::(?:{_PORT}))?"
    r"(?:/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*)?"
    r"(?:\?(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*)?"
    r"(?:#(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*)?"
)


@declared
class FetchOptions(Operation):
    """Where the picture comes from."""

    key: ClassVar[str] = "source"
    title: ClassVar[str] = "Fetch"
    confidential: ClassVar[bool] = True  # URLs may hold passwords

    url: str = param("Public URL of an image, or <platform>:<user> for a social profile picture.", Text(8192))


@declared
class ResponseOptions(Operation):
    """How the request is answered."""

    key: ClassVar[str] = "response"
    title: ClassVar[str] = "Response"

    mode: Literal["json", "binary"] = param(
        "json for metadata, binary for the picture itself.", default="json"
    )
    plan: bool = param("Whether to tell how the request is carried out.", default=False)


@declared
class WebhookOptions(Operation):
    """Answer at once, and post the result to an endpoint later."""

    key: ClassVar[str] = "webhook"
    title: ClassVar[str] = "Webhook"
    confidential: ClassVar[bool] = True

    url: str = param(
        "Endpoint that is notified; it may carry Basic credentials and a query string.", WebAddress()
    )
    delay: int = param("Time after which the notification is sent.", Integer(0, 604_800), unit="s", default=0)


@declared
class CdnOptions(Operation):
    """The service's own cloud storage, if it has one."""

    key: ClassVar[str] = "cdn"
    title: ClassVar[str] = "Cdn"

    push: bool | None = param(
        "Whether the result goes there, and stays; false keeps it in temporary storage. True by default, "
        "unless the result is sent as a picture or to a store.",
        default=None,
    )
