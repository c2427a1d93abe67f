"""Settings of imgproxy mean here what they mean there."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

import imgsvc_core as imgsvc
from imgsvc_core.formats.table import codec_effort
from imgsvc_urls import OriginSource, UrlSource
from imgsvc_urls.dialects import ForeignRequest
from imgsvc_urls.dialects.imgproxy import Imgproxy, ImgproxyUrl
from imgsvc_urls.errors import DialectError
from tests.dialects.pictures import DRAWN, PHOTO, facts, output, planned_size

PLAIN = "plain/https://pics.example/a.jpg"
CHROME = "image/avif,image/webp,image/apng,*/*;q=0.8"
KEY = "1eb5b0e971ad7f45324c1bb15c947cb207c43152fa5c6c7f35c4f36e0c18e0f1"


def asked(rest: str, headers: dict[str, str] | None = None, **settings: Any) -> ImgproxyUrl:
    return Imgproxy(**settings).parse(ForeignRequest(f"/unsafe/{rest}", headers or {}))


def refused(rest: str, headers: dict[str, str] | None = None, **settings: Any) -> tuple[int, str]:
    with pytest.raises(DialectError) as caught:
        asked(rest, headers, **settings)
    return caught.value.status, caught.value.message


ORIGINS = {
    "s3://bucket/": "photos", "s3://bucket/private/": "vault/in/", "gs://b2/": "photos/google",
    "abs://box/": "azure", "swift://account/box/": "swift-box", "local:///": "files/",
}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("s3://bucket/a/b.jpg", OriginSource("photos", "a/b.jpg")),
        ("s3://bucket/private/b.jpg", OriginSource("vault", "in/b.jpg")),
        ("gs://b2/b.jpg", OriginSource("photos", "google/b.jpg")),
        ("abs://box/b.jpg", OriginSource("azure", "b.jpg")),
        ("swift://account/box/b%2525.jpg", OriginSource("swift-box", "b%25.jpg")),
        ("local:///a/b.jpg", OriginSource("files", "a/b.jpg")),
        ("local:/a/b.jpg", OriginSource("files", "a/b.jpg")),
        ("local:///b.jpg%3Fv=3", OriginSource("files", "b.jpg")),
        ("S3://bucket/B.jpg", OriginSource("photos", "B.jpg")),
        ("s3://bucket/John_Doe%20%231%20(Programm)%5B5%5D.jpg",
         OriginSource("photos", "John_Doe #1 (Programm)[5].jpg")),
        ("https://pics.example/b.jpg", UrlSource("https://pics.example/b.jpg")),
    ],
)  # fmt: skip
def test_sources_below_origins(source: str, expected: object) -> None:
    assert asked(f"plain/{source}", origins=ORIGINS).source == expected


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("s3://other/b.jpg", "a key of the setting 'origins'"),
        ("file:///etc/passwd", "a key of the setting 'origins'"),
        ("s3://bucket/../b.jpg", "must be a path below the origin 'photos'"),
        ("s3://bucket/%252e%252e/b.jpg", "must be a path below the origin 'photos'"),
        ("s3://bucket/b.jpg%3F8a6f", "must not name a version"),
    ],
)
def test_sources_that_no_origin_has(source: str, words: str) -> None:
    status, message = refused(f"plain/{source}", origins=ORIGINS)
    assert status == 404
    assert words in message


def test_several_base_urls() -> None:
    bases = ["https://new.example/img/", "https://old.example/", "photos/"]
    for source, expected in (
        ("a.jpg", UrlSource("https://new.example/img/a.jpg")),
        ("https://new.example/img/a.jpg", UrlSource("https://new.example/img/a.jpg")),
        ("https://old.example/a.jpg", UrlSource("https://old.example/a.jpg")),
        ("photos/a.jpg", OriginSource("photos", "a.jpg")),
        ("https://evil.example/a.jpg", UrlSource("https://new.example/img/https://evil.example/a.jpg")),
    ):
        assert asked(f"plain/{source}", base_url=bases).source == expected


def test_replacements_come_before_the_base_url_and_origins() -> None:
    settings = {
        "url_replacements": {
            "mys3://*/": "s3://my_bucket/${1}/images/",
            "short:": "a/",
            "https://*.old.example/*/": "https://$2.example/$1/",
        },
        "origins": {"s3://my_bucket/": "photos"},
        "base_url": ["https://new.example/", "s3://", "https://"],
    }
    for source, expected in (
        ("mys3://items/image01.jpg", OriginSource("photos", "items/images/image01.jpg")),
        ("short:b.jpg", UrlSource("https://new.example/a/b.jpg")),
        ("https://img.old.example/shoes/a.jpg", UrlSource("https://shoes.example/img/a.jpg")),
        ("xmys3://items/a.jpg", UrlSource("https://new.example/xmys3://items/a.jpg")),
    ):
        assert asked(f"plain/{source}", **settings).source == expected


@pytest.mark.parametrize(
    ("source", "allowed"),
    [
        ("s3://bucket/a.jpg", True),
        ("local:///public/a.jpg", True),
        ("https://img.example.org/a.jpg", True),
        ("HTTPS://img.example.org/a.jpg", True),
        ("a.jpg", True),
        ("local:///private/a.jpg", False),
        ("https://example.org/a.jpg", False),
        ("https://evil.net/https://img.example.org/", False),
        ("https://img.example.org/%252e%252e/a.jpg", False),
    ],
)
def test_allowed_sources(source: str, allowed: bool) -> None:
    settings: dict[str, Any] = {
        "allowed_sources": ["s3://", "https://*.example.org/", "local:///pub*/"],
        "origins": ORIGINS,
        "base_url": ["s3://bucket/", "https:", "HTTPS:", "local:"],
    }
    if allowed:
        assert asked(f"plain/{source}", **settings).allowed
    else:
        status, message = refused(f"plain/{source}", **settings)
        assert (status, "'allowed_sources'" in message) == (404, True)
    assert not asked(PLAIN).allowed


def encrypted(text: str, key: str = KEY) -> str:
    padder = PKCS7(128).padder()
    padded = padder.update(text.encode()) + padder.finalize()
    vector = bytes(range(16))
    cipher = Cipher(algorithms.AES(bytes.fromhex(key)), modes.CBC(vector)).encryptor()
    return base64.urlsafe_b64encode(vector + cipher.update(padded) + cipher.finalize()).decode().rstrip("=")


def test_encrypted_sources_as_documented() -> None:
    text = "p5VjorNdhs7mRRw8gA9TWoRlGci3l1kuzqN43UQlRaRIQ0qtBKW3qFABIsx-ZRz_cVc8iVTYbhsNsxNBL1BHaQ"
    found = asked(f"rs:fit:300:300/enc/{text}", source_url_encryption_key=KEY)
    assert found.source == UrlSource("http://example.com/images/curiosity.jpg")


@pytest.mark.parametrize("key", [KEY, KEY[:48], KEY[:32]])
def test_encrypted_sources_may_be_cut_and_have_an_extension(key: str) -> None:
    text = encrypted("s3://bucket/shoe.png", key)
    settings = {"source_url_encryption_key": key, "origins": {"s3://bucket/": "photos"}}
    for rest in (text, f"{text[:9]}/{text[9:]}", f"{text}.webp"):
        assert asked(f"w:80/enc/{rest}", **settings).source == OriginSource("photos", "shoe.png")
    named = asked(f"enc/{text}/shoe.jpg", **settings, base64_url_includes_filename=True)
    assert named.source == OriginSource("photos", "shoe.png")
    assert asked(f"enc/{text}.webp", **settings).options.format == "webp"


def test_what_is_wrong_with_an_encrypted_source_is_not_told() -> None:
    text = encrypted("https://pics.example/a.jpg")
    messages = {
        refused(f"enc/{wrong}", source_url_encryption_key=KEY)[1].partition(", got")[0]
        for wrong in (text[:-5], text[:-1] + "A", "AAAA", text[:22], "%20", encrypted("a", KEY[:32]))
    }
    assert len(messages) == 1
    assert "source_url_encryption_key" in refused(f"enc/{text}")[1]


def test_presets_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "presets"
    file.write_text("  # sizes\n\n  card = rs:fill:300:200/q:70  \n#old=w:1\nwide=pr:card/w:900\n")
    settings = {"presets_path": str(file), "presets": ["card=w:1", "own=w:7"]}
    assert asked(f"pr:card/{PLAIN}", **settings).options == asked(f"rs:fill:300:200/q:70/{PLAIN}").options
    assert asked(f"pr:wide/{PLAIN}", **settings).options.width == 900
    assert asked(f"pr:own/{PLAIN}", **settings).options.width == 7
    assert refused(f"pr:old/{PLAIN}", **settings)[0] == 404


def test_separators() -> None:
    text = "card=rs:fill:300:200|thumb=w:40|#old=w:1| "
    settings: dict[str, Any] = {"presets": text, "presets_separator": "|"}
    assert asked(f"pr:thumb/{PLAIN}", **settings).options.width == 40
    assert asked(f"pr:card/{PLAIN}", **settings).options.height == 200
    comma: dict[str, Any] = {"arguments_separator": ",", "presets": ["card=rs,fill,300,200"]}
    assert asked(f"pr,card/w,80/{PLAIN}", **comma).options.width == 80
    assert asked(f"bg,1,2,3/{PLAIN}", **comma).options.background == imgsvc.Color(1, 2, 3)
    assert asked(f"card/{PLAIN}", **comma, only_presets=True).options.height == 200


def test_formats_that_clients_accept() -> None:
    def format_of(rest: str, accept: str = CHROME, info: imgsvc.ImageInfo = PHOTO, **settings: Any) -> str:
        return str(output(asked(rest, {"Accept": accept}, **settings), info)["format"])

    named, moving = f"{PLAIN}@png", facts("gif", 100, 80, frames=3)
    assert format_of(PLAIN, auto_webp=True) == "webp"
    assert format_of(named, auto_webp=True, auto_avif=True) == "png"
    assert format_of(named, enforce_webp=True) == "webp"
    assert format_of(named, enforce_webp=True, auto_avif=True) == "webp"
    assert format_of(PLAIN, enforce_webp=True, auto_avif=True) == "avif"
    assert format_of(named, enforce_webp=True, enforce_avif=True) == "avif"
    assert format_of(named, enforce_webp=True, enforce_avif=True, info=moving) == "webp"
    assert format_of(named, accept="image/avif", enforce_webp=True) == "png"
    newest, every = f"image/jxl,{CHROME}", {"auto_jxl": True, "auto_avif": True, "auto_webp": True}
    assert format_of(PLAIN, accept=newest, **every) == "jxl"
    assert format_of(PLAIN, **every) == "avif"
    assert format_of(named, accept=newest, **every) == "png"
    assert format_of(PLAIN, accept=newest, info=moving, **every) == "webp"
    assert format_of(named, accept=newest, enforce_jxl=True, enforce_avif=True) == "jxl"
    assert format_of(PLAIN, accept=newest, enforce_jxl=True) == "jxl"
    assert format_of(named, accept="image/webp;q=0", enforce_webp=True) == "png"


@pytest.mark.parametrize("format", ["avif", "jxl"])
def test_formats_of_stills_get_the_first_frame(format: str) -> None:
    assert output(asked(f"f:{format}/{PLAIN}"), facts("gif", 100, 80, frames=3))["frames"] == 1


def test_what_the_format_depends_on() -> None:
    for rest, settings, used in (
        (PLAIN, {"auto_webp": True}, ("Accept",)),
        (f"{PLAIN}@png", {"auto_webp": True}, ()),
        (f"{PLAIN}@png", {"enforce_webp": True}, ("Accept",)),
        (f"raw:1/{PLAIN}", {"enforce_webp": True}, ()),
        (PLAIN, {}, ()),
    ):
        request = ForeignRequest(f"/unsafe/{rest}", {"Accept": CHROME})
        Imgproxy(**settings).parse(request)
        assert request.used_headers == used


@pytest.mark.parametrize(
    ("preferred", "info", "options", "expected"),
    [
        (["jpeg", "png", "gif"], facts("webp", 9, 9), "w:5", "jpg"),
        (["jpeg", "png", "gif"], facts("webp", 9, 9, alpha=True), "w:5", "png"),
        (["webp", "png"], facts("webp", 9, 9, alpha=True), "w:5", "webp"),
        (["webp", "png"], PHOTO, "w:5", "webp"),
        (["avif"], DRAWN, "w:50", "avif"),
        (["avif"], DRAWN, "w:5", "png"),
        (["avif"], PHOTO, "w:5", "jpg"),
        (["jpeg", "png", "gif"], facts("webp", 9, 9, frames=3), "w:5", "gif"),
        (["jpeg", "png", "gif"], facts("webp", 9, 9, frames=3, alpha=True), "w:5", "gif"),
        (["jpeg", "png"], facts("webp", 9, 9, frames=3), "w:5", "jpg"),
        (["jpg"], DRAWN, "w:5", "jpg"),
        (["jpg", "webp"], DRAWN, "w:5", "webp"),
        (["jpg", "webp"], DRAWN, "w:5/bg:fff", "jpg"),
    ],
)
def test_preferred_formats(preferred: list[str], info: imgsvc.ImageInfo, options: str, expected: str) -> None:
    found = asked(f"{options}/{PLAIN}", preferred_formats=preferred)
    assert output(found, info)["format"] == expected


def test_qualities() -> None:
    settings: dict[str, Any] = {"quality": 70, "format_quality": ["avif=40", "webp=55"]}
    for rest, expected in (
        (PLAIN, 70),
        (f"{PLAIN}@webp", 55),
        (f"{PLAIN}@avif", 40),
        (f"fq:webp:33/{PLAIN}@webp", 33),
        (f"q:90/fq:webp:33/{PLAIN}@webp", 90),
    ):
        assert output(asked(rest, **settings))["quality"] == expected
    assert output(asked(f"{PLAIN}@webp", quality=70))["quality"] == 79


@pytest.mark.parametrize(("speed", "encoder"), [(9, 0), (8, 1), (6, 3), (4, 5), (0, 6)])
def test_speed_of_avif(speed: int, encoder: int) -> None:
    made = output(asked(f"{PLAIN}@avif", avif_speed=speed))
    assert codec_effort("avif", made["effort"]) == encoder
    assert (output(asked(f"{PLAIN}@avif")) == made) == (speed == 8)


def test_defaults_of_options() -> None:
    found = asked(PLAIN, strip_metadata=False, skip_processing_formats=["png", "jpeg"])
    assert found.spec(PHOTO) is None
    assert output(asked(PLAIN, strip_metadata=False))["metadata"] == "keep"
    assert output(asked(f"sm:1/{PLAIN}", strip_metadata=False))["metadata"] == "copyright"
    assert output(asked(PLAIN, keep_copyright=False)).get("metadata", "strip") == "strip"
    assert not asked(PLAIN, auto_rotate=False).options.auto_rotate
    assert asked(f"ar:1/{PLAIN}", auto_rotate=False).options.auto_rotate


@pytest.mark.parametrize(
    ("headers", "options", "size"),
    [
        ({"DPR": "2", "Width": "400"}, "", (400, 327)),
        ({"DPR": "2", "Width": "101"}, "", (102, 83)),  # a width of 51, for 50.5
        ({"DPR": "2", "Width": "400"}, "w:100", (200, 163)),
        ({"DPR": "2"}, "w:100/dpr:1", (100, 82)),
        ({"Sec-CH-DPR": "1.5", "DPR": "3", "Sec-CH-Width": "150", "Width": "9"}, "", (150, 122)),
        ({"Sec-CH-DPR": "2", "DPR": "3"}, "w:100", (200, 163)),
        ({"Sec-CH-DPR": "nan", "DPR": "3"}, "w:100", (300, 245)),
        ({"DPR": "8.5"}, "w:100", (100, 82)),
        ({"DPR": "-1", "Width": "0"}, "w:100", (100, 82)),
        ({"Width": "150.5"}, "", (2725, 2225)),
    ],
)
def test_client_hints(headers: dict[str, str], options: str, size: tuple[int, int]) -> None:
    rest = f"{options}/{PLAIN}" if options else PLAIN
    assert planned_size(asked(rest, headers, client_hints=True)) == size
    assert asked(rest, headers) == asked(rest)


def test_the_answer_depends_on_all_client_hints() -> None:
    request = ForeignRequest(f"/unsafe/{PLAIN}", {"DPR": "2"})
    Imgproxy(client_hints=True).parse(request)
    assert set(request.used_headers) == {"Sec-CH-DPR", "DPR", "Sec-CH-Width", "Width"}


def test_the_secret() -> None:
    assert asked(PLAIN, {"authorization": "Bearer open sesame"}, secret="open sesame")
    for headers in ({}, {"Authorization": "Bearer open"}, {"Authorization": "open sesame"}):
        status, message = refused(PLAIN, headers, secret="open sesame")
        assert status == 403
        assert "Authorization" in message
        assert "sesame" not in message
    assert "sesame" not in repr(Imgproxy(secret="open sesame"))


def test_how_long_caches_keep_pictures() -> None:
    assert asked(PLAIN).delivery.max_age is None
    assert asked(PLAIN, ttl=60).delivery.max_age == 60
    assert asked(PLAIN, ttl=0).delivery.max_age == 0
    assert asked(PLAIN).delivery.source_age is None
    assert asked(PLAIN, cache_control_passthrough=True).delivery.source_age


LARGE, MOVING = facts("jpg", 1000, 800), facts("gif", 100, 50, frames=3)


@pytest.mark.parametrize(
    ("options", "info", "refused_by"),
    [
        ("msr:0.8", LARGE, None),
        ("max_src_resolution:0.79", LARGE, "max_src_resolution"),
        ("msr:0.01", MOVING, "max_src_resolution"),
        ("msr:0.01/mafr:0.005", MOVING, None),
        ("mafr:0.004", MOVING, "max_animation_frame_resolution"),
        ("mafr:0.004", LARGE, None),
        ("msfs:1000", LARGE, None),
        ("msfs:999", LARGE, "max_src_file_size"),
        ("maf:3", MOVING, None),
        ("maf:2", MOVING, None),
        ("msr:0.01/maf:2", MOVING, None),
    ],
)
def test_limits_of_urls(options: str, info: imgsvc.ImageInfo, refused_by: str | None) -> None:
    assert refused(f"{options}/{PLAIN}")[0] == 403
    found = asked(f"{options}/{PLAIN}", allow_security_options=True)
    if refused_by is None:
        assert found.spec(info) is not None
    else:
        with pytest.raises(DialectError, match=refused_by) as caught:
            found.spec(info)
        assert caught.value.status == 422


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ("mrd:100", (100, 80)),
        ("w:300/mrd:150", (150, 120)),
        ("w:300/mrd:0", (300, 240)),
        ("rs:fill:300:300/mrd:150", (150, 150)),
        ("w:300/pd:50/mrd:200", (200, 170)),
        ("rs:fit:300:300:0:1/mrd:100", (100, 100)),
        ("w:90/mrd:100", (90, 72)),
        ("w:101/mrd:100", (100, 80)),
    ],
)
def test_the_largest_side_of_results(options: str, size: tuple[int, int]) -> None:
    found = asked(f"{options}/{PLAIN}", allow_security_options=True)
    assert planned_size(found, LARGE) == size


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"presets": ["card=w:1,wide=w:2"]}, "presets"),
        ({"presets": ["card=msr:5"]}, "presets"),
        ({"presets": ["card=w,5"]}, "presets"),
        ({"presets_path": "/nowhere/presets"}, "presets_path"),
        ({"url_replacements": {"a*": "b$2"}}, "url_replacements"),
        ({"url_replacements": ["a=b"]}, "url_replacements"),
        ({"origins": {"s3://bucket/": "Not a name"}}, "origins"),
        ({"origins": {"": "photos"}}, "origins"),
        ({"allowed_sources": ["https://example.org"]}, "allowed_sources"),
        ({"source_url_encryption_key": KEY[:-2]}, "source_url_encryption_key"),
        ({"source_url_encryption_key": "x" * 32}, "source_url_encryption_key"),
        ({"preferred_formats": ["nosuch"]}, "preferred_formats"),
        ({"preferred_formats": ["svg"]}, "preferred_formats"),
        ({"preferred_formats": []}, "preferred_formats"),
        ({"format_quality": ["avif=0"]}, "format_quality"),
        ({"quality": 0}, "quality"),
        ({"avif_speed": 10}, "avif_speed"),
        ({"ttl": -1}, "ttl"),
        ({"arguments_separator": ""}, "arguments_separator"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(imgsvc.SpecError) as caught:
        Imgproxy(**settings)
    assert [problem.path for problem in caught.value.problems] == [name]
    assert f"'{name}'" in caught.value.message
    assert KEY[:-2] not in caught.value.message
