"""URLs of pictures: what is done to which picture, in a path that can be signed.

::

    /1.0/image/{signature}/{option}/{option}/.../{source}

    signature  "unsigned", or {key id}.{HMAC-SHA256 of all that follows, in base64url}
    option     name:value, such as resize:800x600
    source     plain/{URL}, b64/{URL in base64url}, or {origin}/{path}

Values are percent-encoded. `Signer` writes URLs; `split`, `verify` and `parse` read the path after
``/1.0/image`` as it was sent. The same paths after ``/1.0/info`` tell what the picture shows. libvips is not
needed.
"""

from imgsvc_core.spec.presets import parse_preset
from imgsvc_urls.delivery import Delivery
from imgsvc_urls.errors import DialectError, InvalidSignature, UrlExpired
from imgsvc_urls.parsing import PictureUrl, parse
from imgsvc_urls.signatures import UNSIGNED, SignedPath, sign, split, verify
from imgsvc_urls.signer import ANIMATED_FORMATS, INFO_ROOT, PREFERRED_FORMATS, ROOT, Signer
from imgsvc_urls.sources import (
    AnySource,
    InlineSource,
    OriginSource,
    Source,
    UrlSource,
    is_origin_name,
    source_of,
)

__all__ = [
    "ANIMATED_FORMATS",
    "INFO_ROOT",
    "PREFERRED_FORMATS",
    "ROOT",
    "UNSIGNED",
    "AnySource",
    "Delivery",
    "DialectError",
    "InlineSource",
    "InvalidSignature",
    "OriginSource",
    "PictureUrl",
    "SignedPath",
    "Signer",
    "Source",
    "UrlExpired",
    "UrlSource",
    "is_origin_name",
    "parse",
    "parse_preset",
    "sign",
    "source_of",
    "split",
    "verify",
]
