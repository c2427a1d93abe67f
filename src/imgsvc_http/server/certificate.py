"""The TLS certificate: one of the settings, or a self-signed one for trials on a machine or network."""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from yarl import URL

from imgsvc_http.settings import ServerSettings
from imgsvc_http.settings.problems import wrong_setting
from imgsvc_http.settings.url_host import LOCALHOST, parse_address

_VALID = timedelta(days=825)
_RENEW_BEFORE = timedelta(days=30)


def tls_context(server: ServerSettings) -> ssl.SSLContext:
    """Return TLS with the certificate of the settings, or with a self-signed one in the state folder.

    Raises:
        SpecError: the certificate or its key cannot be used.
    """
    certificate, key = certificate_files(server)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key, _no_passphrase)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        expected = f"must be a certificate in PEM with its key, got '{certificate}': {reason}"
        raise wrong_setting("server.certificate", expected) from error
    return context


def certificate_files(server: ServerSettings) -> tuple[Path, Path]:
    """Return the files of the certificate and its key.

    A self-signed certificate is for localhost and the host of the public address. It is made on the first
    run, and again before it expires or for another host.
    """
    if server.certificate is not None and server.private_key is not None:
        return server.certificate, server.private_key
    certificate = server.state_folder / "localhost.pem"
    key = server.state_folder / "localhost.key"
    names = _names(server)
    if not (certificate.exists() and key.exists() and _serves(certificate, names)):
        _make(certificate, key, names)
    return certificate, key


def certificate_to_trust(server: ServerSettings) -> Path | None:
    """Return the file of the certificate if it is self-signed, so that clients have to trust it.

    Return None if an authority has signed it, or if it cannot be read.
    """
    certificate, _ = certificate_files(server)
    try:
        loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    except ValueError:
        return None  # OpenSSL accepts some that violate the standard
    return certificate if loaded.issuer == loaded.subject else None


def _no_passphrase() -> str:
    """Refuse keys with a passphrase, as OpenSSL would ask for it at the terminal."""
    raise ValueError("its key must have no passphrase")


def _names(server: ServerSettings) -> list[x509.GeneralName]:
    hosts = (LOCALHOST, "127.0.0.1", "::1", URL(server.public_url).raw_host or LOCALHOST)
    addresses = [(host, parse_address(host)) for host in dict.fromkeys(hosts)]
    return [x509.IPAddress(address) if address else x509.DNSName(host) for host, address in addresses]


def _make(certificate: Path, key_file: Path, names: list[x509.GeneralName]) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "imgsvc on localhost")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    descriptor = os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(private)
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))


def _serves(certificate: Path, names: list[x509.GeneralName]) -> bool:
    """Return True if a certificate has these names and does not expire soon."""
    try:
        loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
        held = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    return set(names) <= set(held) and datetime.now(UTC) < loaded.not_valid_after_utc - _RENEW_BEFORE
