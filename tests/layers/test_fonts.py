"""The fonts that texts may use, and how they are read and told."""

from __future__ import annotations

import importlib.util
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

import imgsvc_core as imgsvc
from imgsvc_core.errors import MissingDependency, SpecError
from imgsvc_core.fonts import FOLDERS, SYSTEM, Catalog, Font, catalog
from imgsvc_core.fonts import catalog as module_of_catalog
from imgsvc_core.fonts.sfnt import FontFile, letters_of, read_font
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.texts import planned_text
from imgsvc_core.spec.layers import Text
from tests.support import encoded

pytest.importorskip("fontpkg_inter")
pytest.importorskip("manimgx_fonts")

TEXT = {"layers": [{"text": {"text": "Hi", "size": 20}}]}


def folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


def names() -> list[str]:
    return sorted(catalog().families.values())


def test_the_extra_brings_inter_and_noto_for_many_scripts() -> None:
    assert {"Inter", "Noto Sans", "Noto Sans Arabic", "Noto Sans Devanagari", "Noto Sans Thai"} <= {*names()}
    assert all(catalog().has(letter) for letter in "aßЖλשمहไ")
    assert not catalog().has("\U00013000")
    assert catalog().broken == ()


def test_cjk_is_read_from_a_collection() -> None:
    pytest.importorskip("manimgx_fonts_cjk")
    assert "Noto Sans CJK JP" in names()
    assert all(catalog().has(letter) for letter in "漢あ한𠮷")


@pytest.mark.parametrize(
    ("text", "font"),
    [
        (None, Font("Inter")),
        ("Inter", Font("Inter")),
        ("inter BOLD", Font("Inter", 700)),
        ("Inter Semi-Bold Italic", Font("Inter", 600, italic=True)),
        ("Inter Extra Light", Font("Inter", 200)),
        ("Inter 450 oblique", Font("Inter", 450, italic=True)),
        ("Noto Sans Thai Black", Font("Noto Sans Thai", 900)),
        *(
            (f"Inter {word}", Font("Inter", weight))
            for words, weight in (
                ("thin hairline", 100),
                ("extralight ultra-light", 200),
                ("light", 300),
                ("regular normal book", 400),
                ("medium", 500),
                ("semibold demibold", 600),
                ("bold", 700),
                ("extrabold ultrabold", 800),
                ("black heavy", 900),
            )
            for word in words.split()
        ),
        ("Inter demi bold", Font("Inter", 600)),
        ("Inter Bolder", None),
        ("Helvetica", None),
        ("Bold", None),
        ("Inter 1001", None),
    ],
)
def test_a_font_is_a_family_with_words_for_its_weight_and_style(text: str | None, font: Font | None) -> None:
    assert Font.parse(text, catalog()) == font


@pytest.mark.parametrize("table", [b"COLR", b"CBDT", b"SVG ", b"sbix"])
def test_fonts_with_letters_in_colors_are_known(table: bytes, tmp_path: Path) -> None:
    plain = next(folder_of("fontpkg_inter").rglob("Inter[[]*.ttf"))
    assert not read_font(plain).colored
    whole = plain.read_bytes()
    (tmp_path / "colored.ttf").write_bytes(whole[:12] + table + whole[16:])
    assert read_font(tmp_path / "colored.ttf").colored


@pytest.mark.parametrize("place", [0, 1])
def test_a_collection_has_letters_in_colors_if_one_of_its_fonts_has(place: int, tmp_path: Path) -> None:
    whole = next(folder_of("fontpkg_inter").rglob("Inter[[]*.ttf")).read_bytes()
    face = whole[: 12 + 16 * struct.unpack_from(">H", whole, 4)[0]]
    faces = [face, face]
    faces[place] = face[:12] + b"COLR" + face[16:]
    head = struct.pack(">4sIIII", b"ttcf", 0x10000, 2, len(whole), len(whole) + len(face))
    (tmp_path / "two.ttc").write_bytes(head + whole[len(head) :] + b"".join(faces))
    assert read_font(tmp_path / "two.ttc").colored


@pytest.mark.parametrize(
    ("platform", "encoding"), [(0, "utf-16-be"), (1, "mac-roman"), (3, "utf-16-be"), (4, "")]
)
def test_families_are_read_as_their_platform_writes_them(
    platform: int, encoding: str, tmp_path: Path
) -> None:
    """The name of a group of families, which comes second in the table, goes before that of the family."""
    whole = next(folder_of("fontpkg_inter").rglob("Inter[[]*.ttf")).read_bytes()
    texts = [text.encode(encoding or "ascii") for text in ("A" * 100, "Acme")]
    records = [
        struct.pack(">HHHHHH", platform, 0, 0, name, len(text), offset)
        for name, text, offset in zip((1, 16), texts, (0, len(texts[0])), strict=True)
    ]
    table = struct.pack(">HHH", 0, 2, 30) + b"".join(records + texts)
    entry = whole.index(b"name")
    place = struct.pack(">II", len(whole), len(table))
    (tmp_path / "acme.ttf").write_bytes(whole[: entry + 8] + place + whole[entry + 16 :] + table)
    if encoding:
        assert read_font(tmp_path / "acme.ttf").families == ("Acme", "A" * 100)
    else:
        with pytest.raises(ValueError, match="it has no family"):
            read_font(tmp_path / "acme.ttf")


def test_letters_whose_glyph_is_missing_are_not_there(tmp_path: Path) -> None:
    """Ranges A to C and a to b, whose glyphs are listed: 0 is none."""
    head = struct.pack(">HHHHI", 0, 1, 3, 1, 12)
    segments = struct.pack(">3H2x3H", 67, 98, 0xFFFF, 65, 97, 0xFFFF)
    glyphs = struct.pack(">3h3H5H", 0, 0, 1, 6, 10, 0, 5, 0, 6, 7, 0)
    table = struct.pack(">HHHH6x", 4, 50, 0, 6) + segments + glyphs
    (tmp_path / "font").write_bytes(head + table)
    font = FontFile(tmp_path / "font", ("Ours",), ((0, len(head + table)),), b"", colored=False)
    assert letters_of(font) == [(65, 65), (67, 67), (97, 97)]


def test_without_a_usual_font_there_is_another_one() -> None:
    known = {"acme": "Acme", "zapf": "Zapf"}
    assert Font.parse(None, Catalog((), known, (), ())) == Font("Acme")
    assert Font.parse(None, Catalog((), {**known, "noto sans": "Noto Sans"}, (), ())) == Font("Noto Sans")
    assert Font.parse(None, Catalog((), {}, (), ())) is None


def test_folders_add_fonts_and_broken_files_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = next(folder_of("fontpkg_inter").rglob("Inter[[]*.ttf")).read_bytes()
    (tmp_path / "cut.ttf").write_bytes(whole[:5000])
    name, no_name = "Inter".encode("utf-16-be"), "\1nter".encode("utf-16-be")
    (tmp_path / "junk.ttf").write_bytes(whole.replace(name, no_name))
    (tmp_path / "none.otf").write_text("no font")
    (tmp_path / "read me.txt").write_text("no font either")
    monkeypatch.setattr(sys.modules[module_of_catalog.__module__], "_PACKAGES", ())
    monkeypatch.setenv(FOLDERS, str(tmp_path))
    with pytest.raises(MissingDependency, match=r"imgsvc\[fonts\]"):
        planned_text(Text(text="a", size=9), "layers[0].text", Size(99, 99), 1)
    own = tmp_path / "own"
    own.mkdir()
    (own / "a.ttf").write_bytes(whole)
    monkeypatch.setenv(FOLDERS, f'["{tmp_path}", "{tmp_path}/nowhere"]')
    sys.modules[module_of_catalog.__module__]._read.cache_clear()
    assert names() == ["Inter"]
    assert catalog().broken == ("cut.ttf", "junk.ttf", "none.otf", "nowhere")
    with pytest.raises(SpecError, match=r"of Inter, got 'Roboto'; fonts that cannot be read: cut\.ttf, junk"):
        planned_text(Text(text="a", size=9, font="Roboto"), "layers[0].text", Size(99, 99), 1)
    monkeypatch.setenv(FOLDERS, f"{tmp_path}/nowhere")
    monkeypatch.setattr(sys.modules[module_of_catalog.__module__], "_OF_SYSTEM", (str(own), "/nowhere"))
    for told, expected in (("0", []), ("1", ["Inter"]), ("True", ["Inter"])):
        monkeypatch.setenv(SYSTEM, told)
        assert names() == expected


@pytest.mark.parametrize(
    "listed",
    [
        "{0}/my own,{0}/x",
        " {0}/x , {0}/my own ",
        '["{0}/my own"]',
        "[{0}/x,{0}/my own",
        "{0}/[own],{0}/my own",
    ],
)
def test_folders_are_listed_as_in_settings_of_the_service(
    listed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my own").mkdir()
    shutil.copy(next(folder_of("manimgx_fonts").glob("NotoSansThai*.ttf")), tmp_path / "my own" / "own.ttf")
    monkeypatch.setattr(sys.modules[module_of_catalog.__module__], "_PACKAGES", ())
    monkeypatch.setenv(FOLDERS, listed.format(tmp_path))
    assert "Noto Sans Thai" in names()


@pytest.mark.parametrize("asked", ["In\u3000er Bold", "in er bold"])
def test_families_may_have_spaces_of_any_kind(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of Japanese fonts have, such as ＤＦ\u3000特太ゴシック体."""
    whole = next(folder_of("fontpkg_inter").rglob("Inter[[]*.ttf")).read_bytes()
    name, own = (text.encode("utf-16-be") for text in ("Inter", "In\u3000er"))
    (tmp_path / "own.ttf").write_bytes(whole.replace(name, own))
    monkeypatch.setenv(FOLDERS, str(tmp_path))
    assert Font.parse(asked, catalog()) == Font("In\u3000er", 700)


def test_of_very_many_fonts_some_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = next(folder_of("manimgx_fonts").glob("NotoSansThai*.ttf")).read_bytes()
    for number in range(100):
        own = f"T{number:03}".encode("utf-16-be")
        (tmp_path / f"{number}.ttf").write_bytes(whole.replace("Thai".encode("utf-16-be"), own))
        (tmp_path / f"broken{number}.ttf").write_text("no font")
    monkeypatch.setenv(FOLDERS, str(tmp_path))
    with pytest.raises(
        SpecError, match=r"T009, .* more, got 'Roboto'; fonts .* broken0.ttf, .* 50 more"
    ) as caught:
        planned_text(Text(text="a", size=9, font="Roboto"), "layers[0].text", Size(99, 99), 1)
    assert len(str(caught.value)) < 3000


def test_another_font_is_another_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = imgsvc.parse(TEXT).digest
    plain = imgsvc.parse({"resize": {"width": 9}}).digest
    shutil.copy(next(folder_of("manimgx_fonts").glob("NotoSansThai*.ttf")), tmp_path / "own.ttf")
    monkeypatch.setenv(FOLDERS, str(tmp_path))
    # A spec remembers its digest, so this one is not taken from the cache of parsed requests.
    assert imgsvc.Spec(layers=TEXT["layers"]).digest != first
    assert imgsvc.Spec(resize={"width": 9}).digest == plain


FORK = """
import os, imgsvc_core as imgsvc
imgsvc.process(open("a.png", "rb").read(), {"layers": [{"text": {"text": "a", "size": 9}}]}, threads=1).data
if child := os.fork():
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
try:
    imgsvc.process(open("a.png", "rb").read(), {"layers": [{"text": {"text": "b", "size": 9}}]}).data
except imgsvc.ForkedProcess:
    os._exit(7)
"""


@pytest.mark.processes
def test_a_fork_of_a_process_that_drew_text_is_refused_instead_of_waiting(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded.png().data)
    done = subprocess.run([sys.executable, "-c", FORK], cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 7


DRAW = """
import sys, imgsvc_core
svg = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="40"><text x="5" y="30" font-size="28" '
svg += f'font-family="{sys.argv[1]}">Rag</text></svg>'
sys.stdout.buffer.write(imgsvc_core.process(svg.encode(), {"output": {"format": "png"}}).data)
"""


@pytest.mark.processes
def test_drawings_see_the_same_fonts_and_no_others() -> None:
    """Families that only the system has look as those that nobody has."""
    made = {
        family: subprocess.check_output([sys.executable, "-c", DRAW, family])
        for family in ("DejaVu Serif", "Nobody's", "Noto Sans", "Inter")
    }
    assert made["DejaVu Serif"] == made["Nobody's"]
    assert made["Inter"] != made["Noto Sans"]


def test_no_font_needs_the_characters_that_choose_a_form(monkeypatch: pytest.MonkeyPatch) -> None:
    fonts = tuple(font for font in catalog().fonts if "Inter" in font.families)
    inter = attrs.evolve(catalog(), fonts=fonts)
    monkeypatch.setattr("imgsvc_core.fonts.catalog", lambda: inter)
    chosen = "".join(map(chr, (0xFE00, 0xFE0E, 0xFE0F, 0xE0100, 0xE01EF)))
    assert not any(map(inter.has, chosen))
    assert (
        planned_text(Text(text=f"\u2665{chosen}", size=20), "text", Size(100, 100), 1).letters[1:] == chosen
    )
    with pytest.raises(SpecError, match=r"got '\ufe10' \(U\+FE10\)$"):
        planned_text(Text(text="\u2665\ufe10", size=20), "text", Size(100, 100), 1)
