"""A certificate for localhost, for those who try the service on their own machine."""

from __future__ import annotations

import ipaddress
import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from imgsvc_core.errors import Problem, SpecError
from imgsvc_http.settings import Server

_VALID = timedelta(days=825)
_RENEW_BEFORE = timedelta(days=30)


def tls_context(server: Server) -> ssl.SSLContext:
    """TLS with the certificate of the settings, or one for localhost in the state folder.

    Raises:
        SpecError: the certificate or its key cannot be used.
    """
    certificate, key = certificate_files(server)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or str(error)
        message = (
            f"Setting 'server.certificate' must be a certificate in PEM with its key, got '{certificate}'"
        )
        raise SpecError([Problem("server.certificate", f"{message}: {reason}")]) from error
    return context


def certificate_files(server: Server) -> tuple[Path, Path]:
    """The certificate and its key; those for localhost are made on the first run, and before they expire."""
    if server.certificate is not None and server.private_key is not None:
        return server.certificate, server.private_key
    certificate = server.state_folder / "localhost.pem"
    key = server.state_folder / "localhost.key"
    if not (certificate.exists() and key.exists()) or _expires_soon(certificate):
        _make(certificate, key)
    return certificate, key


def _make(certificate: Path, key_file: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "imgsvc on localhost")])
    now = datetime.now(UTC)
    hosts = x509.SubjectAlternativeName(
        [
            x509.DNSName("localhost"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.IPAddress(ipaddress.ip_address("::1")),
        ]
    )
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _VALID)
        .add_extension(hosts, critical=False)
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


def _expires_soon(certificate: Path) -> bool:
    try:
        loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    except ValueError:
        return True
    return loaded.not_valid_after_utc - _RENEW_BEFORE < datetime.now(UTC)
