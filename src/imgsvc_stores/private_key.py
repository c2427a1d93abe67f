"""The private keys of service accounts."""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from imgsvc_stores.access import MOST_KEY_CHARACTERS


def private_key(text: object) -> RSAPrivateKey:
    """Return the RSA key in a PEM text; `ValueError` if it holds none.

    A key whose numbers do not fit together is refused when it is used: checking that takes long.
    """
    if not isinstance(text, str) or len(text) > MOST_KEY_CHARACTERS:
        raise ValueError("no key, or too large a one")
    try:
        key = load_pem_private_key(text.encode(), password=None, unsafe_skip_rsa_key_validation=True)
    except (TypeError, UnsupportedAlgorithm) as error:
        raise ValueError("a key that needs a password, or of an unknown kind") from error
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("a key of another kind")
    return key
