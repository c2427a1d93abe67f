"""What README says works: its examples, its links, and the commands that CI runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import imgsvc_core as imgsvc

TOP = Path(__file__).parent.parent
TEXTS = {
    name: (TOP / name).read_text(encoding="utf-8")
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
}
README = TEXTS["README.md"]


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands(start: str) -> list[str]:
    """The lines of shell blocks that begin so."""
    return [line for block in blocks("sh") for line in block.splitlines() if line.startswith(start)]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder that looks like a clone, as far as examples reach."""
    (tmp_path / "examples").symlink_to(TOP / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_example_runs(checkout: Path) -> None:
    (example,) = blocks("python")
    output = subprocess.check_output([sys.executable, "-c", example], text=True)
    width, height, size = map(int, output.splitlines()[0].split())
    found = imgsvc.inspect(checkout / "portrait.webp")
    assert (width, height, size) == (300, 300, found.bytes) == (found.width, found.height, size)


@pytest.mark.parametrize("command", commands("imgsvc "))
def test_command_example_runs(command: str, checkout: Path) -> None:
    _, *arguments = shlex.split(command)
    before = set(checkout.iterdir())
    output = subprocess.check_output([sys.executable, "-m", "imgsvc_cli", *arguments], text=True)
    assert output.strip()
    made = set(checkout.iterdir()) - before
    assert {path.name for path in made} == ({"coffee.webp"} if "-o coffee.webp" in command else set())
    assert all(imgsvc.inspect(path).upright_size == (300, 200) for path in made)


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_to_files(name: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", TEXTS[name])
    missing = [link for link in links if "://" not in link and not (TOP / link).exists()]
    assert not missing


def test_figures_beside_others_are_those_of_the_page_and_lead_to_their_program() -> None:
    rows = re.findall(r"^\| .+? \| (\[.+) \|$", README, re.MULTILINE)
    cells = [cell for row in rows for cell in row.split(" | ") if cell != "–"]
    programs = dict(re.findall(r"^\[(\w)\]: (.+)$", README, re.MULTILINE))
    page = (TOP / "docs" / "performance.md").read_text(encoding="utf-8")
    measured = set(re.findall(r"(?<=\| )[\d.]+(?= \|)", page))
    assert len(cells) > 20
    for cell in cells:
        linked = re.fullmatch(r"\[([\d.]+)\]\[(\w)\]", cell)
        assert linked, f"{cell} is no figure with a link"
        assert linked[1] in measured, f"{cell} is not in docs/performance.md"
        assert (TOP / programs[linked[2]]).is_file()


def test_set_up_commands_are_those_that_ci_runs() -> None:
    set_up = commands("python3 -m venv")
    assert [command.split()[-1] for command in set_up] == ["demo", "tests"]
    script = (TOP / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in script if line in set_up] == set_up
    assert [line for line in script if "nox -s" in line][-1] == set_up[-1]


def test_contributing_names_what_is_there() -> None:
    named = re.findall(r"^\| `([^`]+/)`", TEXTS["CONTRIBUTING.md"], re.MULTILINE)
    assert named
    assert all((TOP / folder).is_dir() for folder in named)
