"""The address that the service tells, and the certificate that holds it."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from imgsvc_core.errors import SpecError
from imgsvc_http.server import certificate
from imgsvc_http.server.certificate import certificate_files, certificate_to_trust, tls_context
from imgsvc_http.settings import ServerSettings


@pytest.mark.parametrize(
    ("host", "called"),
    [
        ("127.0.0.1", "localhost"), ("0.0.0.0", "localhost"), ("::", "localhost"), ("localhost", "localhost"),
        ("::1", "[::1]"), ("127.0.0.2", "127.0.0.2"), ("192.168.7.1", "192.168.7.1"), ("box.lan", "box.lan"),
        ("FD00:0::7", "[fd00::7]"),
    ],
)  # fmt: skip
def test_the_public_address_is_that_of_the_host(host: str, called: str, tmp_path: Path) -> None:
    """And the certificate that is made for it holds it."""
    server = ServerSettings(host=host, port=8443, state_folder=tmp_path)
    assert server.public_url == f"https://{called}:8443"
    loaded = x509.load_pem_x509_certificate(certificate_files(server)[0].read_bytes())
    names = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    held = {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}
    assert {called.strip("[]"), "localhost", "127.0.0.1", "::1"} <= held


def test_a_certificate_is_made_for_a_public_address_that_is_set(tmp_path: Path) -> None:
    server = ServerSettings(base_url="https://Büro.example/images", state_folder=tmp_path)
    context = ssl.create_default_context(cafile=certificate_files(server)[0])
    (trusted,) = context.get_ca_certs()
    assert ("DNS", "xn--bro-hoa.example") in trusted["subjectAltName"]


@pytest.mark.parametrize(("days", "is_kept"), [(31, True), (29, False)])
def test_a_certificate_is_made_again_a_month_before_it_expires(
    days: int, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "_VALID", timedelta(days=days))
    server = ServerSettings(state_folder=tmp_path)
    first = certificate_files(server)[0].read_bytes()
    assert (certificate_files(server)[0].read_bytes() == first) is is_kept


def test_clients_are_given_certificates_that_nobody_else_vouches_for(tmp_path: Path) -> None:
    own = ServerSettings(state_folder=tmp_path)
    self_signed, key_file = certificate_files(own)
    assert certificate_to_trust(own) == self_signed
    key = load_pem_private_key(key_file.read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    loaded = x509.load_pem_x509_certificate(self_signed.read_bytes())
    vouched = (
        x509.CertificateBuilder()
        .subject_name(loaded.subject)
        .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "an authority")]))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(loaded.not_valid_before_utc)
        .not_valid_after(loaded.not_valid_after_utc)
        .sign(key, hashes.SHA256())
    )
    chain = tmp_path / "chain.pem"
    chain.write_bytes(vouched.public_bytes(Encoding.PEM) + self_signed.read_bytes())
    assert certificate_to_trust(ServerSettings(certificate=chain, private_key=key_file)) is None
    assert certificate_to_trust(ServerSettings(certificate=self_signed, private_key=key_file)) == self_signed


def test_a_key_with_a_passphrase_is_refused_without_asking(tmp_path: Path) -> None:
    self_signed, key_file = certificate_files(ServerSettings(state_folder=tmp_path))
    key = load_pem_private_key(key_file.read_bytes(), password=None)
    locked = tmp_path / "locked.key"
    locked.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    )
    with pytest.raises(SpecError, match="its key must have no passphrase"):
        tls_context(ServerSettings(certificate=self_signed, private_key=locked))
