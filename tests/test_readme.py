"""What README says works: its examples, its links, and the commands that CI runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import attrs
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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
    (tmp_path / "build").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_example_runs(checkout: Path) -> None:
    (example,) = blocks("python")
    output = subprocess.check_output([sys.executable, "-c", example], text=True)
    width, height, size = map(int, output.splitlines()[0].split())
    found = imgsvc.inspect(checkout / "build" / "portrait.webp")
    assert (width, height, size) == (300, 300, found.bytes) == (found.width, found.height, size)


def test_command_example_runs(checkout: Path) -> None:
    command, playground = commands("imgsvc ")
    _, *arguments = shlex.split(command)
    before = set(checkout.iterdir())
    output = subprocess.check_output([sys.executable, "-m", "imgsvc_cli", *arguments], text=True)
    assert output.strip()
    assert set(checkout.iterdir()) == before, "it writes outside of build/, which git ignores"
    assert imgsvc.inspect(checkout / "build" / "coffee.webp").upright_size == (300, 200)
    assert playground == "imgsvc playground"


def installed_bytes(*requirements: str) -> int:
    """Sum what the distributions of requirements, and of those that they require, take on the disk."""
    found: dict[str, int] = {}
    asked: set[tuple[str, str]] = set()

    def add(text: str) -> None:
        requirement = Requirement(text)
        package = distribution(requirement.name)
        name = canonicalize_name(requirement.name)
        found[name] = sum(
            path.stat().st_size for file in package.files or () if (path := Path(str(file.locate()))).exists()
        )
        for extra in ("", *requirement.extras):
            if (name, extra) not in asked:
                asked.add((name, extra))
                for inner in map(Requirement, package.requires or ()):
                    if inner.marker is None or inner.marker.evaluate({"extra": extra}):
                        add(str(inner))

    for text in requirements:
        add(text)
    return sum(found.values())


def test_the_demo_installs_only_what_it_needs() -> None:
    """README promises 400 MB for the environments of nox and of the demo; nox and pip take 60 of them."""
    session = (TOP / "noxfile.py").read_text(encoding="utf-8").partition("def demo(")[2].partition("@nox")[0]
    extras = re.findall(r'install\("-e", "\.(\[.+?\])"\)', session)
    assert len(extras) == 1
    assert installed_bytes(f"imgsvc{extras[0]}") < 340_000_000
    assert "400 MB" in README


def test_the_size_of_an_installation_is_told_as_it_is() -> None:
    """Blocks of the disk and the environment itself add a tenth to the bytes of the files."""
    pages = [TOP / "docs" / name for name in ("start.md", "index.md")]
    texts = [README, *(page.read_text(encoding="utf-8") for page in pages)]
    told = {int(size) for text in texts for size in re.findall(r"one to three minutes and (\d+)\sMB", text)}
    assert len(told) == 1
    needed = 1.1 * installed_bytes("imgsvc[all]") / 1e6
    assert needed <= told.pop() < 1.3 * needed


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_to_files(name: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", TEXTS[name])
    missing = [link for link in links if "://" not in link and not (TOP / link).exists()]
    assert not missing


def test_each_release_takes_two_screens_of_the_changelog() -> None:
    """On the page of the documentation, 600 words of short lines are 1,800 pixels high."""
    _, *releases = re.split(r"^## ", TEXTS["CHANGELOG.md"], flags=re.MULTILINE)
    assert releases
    assert all(len(release.split()) <= 600 for release in releases)


def table(text: str, *titles: str) -> list[list[str]]:
    """The rows of the table whose columns have these titles."""
    head = "".join(rf"\| {re.escape(title)} " for title in titles)
    (rows,) = re.findall(rf"^{head}\|\n\|[-:| ]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [line.strip("| ").split(" | ") for line in rows.splitlines()]


@attrs.frozen
class Measured:
    """How a task went beside another program: our speed over its, both truths, and what measured them."""

    speed: float
    truths: tuple[str, str]
    program: str

    @property
    def cell(self) -> str:
        return f"[{self.speed:.2f}][{self.program}] {' : '.join(self.truths)}"


def measured() -> dict[tuple[str, str], Measured]:
    """What docs/performance.md tells, of each task beside each other program."""
    page = (TOP / "docs" / "performance.md").read_text(encoding="utf-8")
    titles = "job", "by", "CPU ms", "spread", "bytes", "SSIMULACRA2", "speed of imgsvc over it"
    jobs = {(job, by): (1 / float(cpu), score) for job, by, cpu, _, _, score, *_ in table(page, *titles)}
    titles = "work", "by", "requests a second", "spread", "CPU ms a request", "bytes", "SSIMULACRA2"
    works = {(work, by): (float(rate), score) for work, by, rate, *_, score in table(page, *titles)}
    found = {}
    for rates, program in ((jobs, "libraries"), (works, "service_others")):
        for (work, by), (rate, score) in rates.items():
            if not by.startswith("imgsvc"):
                ours, our_score = rates[work, "imgsvc"]
                found[work, by] = Measured(ours / rate, (our_score, score), f"benchmarks/{program}.py")
    truths = "SSIMULACRA2 of imgsvc", "of Pillow"
    tools = [f"{tool}, {size}" for size in ("12mp", "2mp") for tool in ("imgsvc", "ImageMagick", "Pillow")]
    for name, mine, _, pillow, *_, truth, its_truth in table(page, "filter", *tools, *truths):
        if pillow != "-":
            speed = float(mine) / float(pillow)
            found[name, "Pillow"] = Measured(speed, (truth, its_truth), "benchmarks/spatial.py")
    return found


BESIDE = {
    "JPEG of 6 MP to 720 px, of 12 MP to 1600 px": [
        ("JPEG 2725 x 2225 to 720 x 588", "JPEG 6 MP to 720 x 588"),
        ("JPEG 12 MP to 1600 x 1200",),
    ],
    "PNG of 64 x 64, small JPEG": [("PNG 64 x 64 to 32 x 32",), ("JPEG 640 x 480 to WebP 200 x 150",)],
    "GIF to WebP, to GIF": [
        ("GIF of 20 frames to WebP 240 x 196", "GIF of 20 frames to WebP"),
        ("GIF of 20 frames to half its size",),
    ],
    "blur, sepia": [("gaussian 30",), ("sepia 60",)],
}
"""What docs/performance.md calls the tasks of README. A title with a comma names two tasks."""


def test_figures_beside_others_are_those_of_the_page_and_lead_to_their_program() -> None:
    others = "imgproxy", "ipx", "thumbor", "sharp", "pyvips", "Pillow"
    programs = dict(re.findall(r"^\[(\w)\]: (.+)$", README, re.MULTILINE))
    assert all((TOP / program).is_file() for program in programs.values())
    speeds = measured()
    rows = {task: cells for task, *cells in table(README, "task", *others)}
    assert list(rows) == list(BESIDE)
    shown = set()
    for task, cells in rows.items():
        for other, cell in zip(others, cells, strict=True):
            found = [[(work, other) for work in names if (work, other) in speeds] for names in BESIDE[task]]
            figures = [speeds[keys[0]].cell if keys else "–" for keys in found]
            wanted = ", ".join(figures) if any(found) else "–"
            given = re.sub(r"\[(\w)\]", lambda letter: f"[{programs[letter[1]]}]", cell)
            assert given == wanted, f"{task} beside {other} is {wanted} in docs/performance.md"
            shown.update(key for keys in found for key in keys)
    for other in others:
        slowest = min((key for key in speeds if key[1] == other), key=lambda key: speeds[key].speed)
        assert slowest in shown, f"README hides where it is slowest beside {other}: {slowest[0]}"


def test_set_up_commands_are_those_that_ci_runs() -> None:
    set_up = [command for command in commands("python3 -m venv") if ".venv/bin/nox" in command]
    assert [command.split()[-1] for command in set_up] == ["demo", "tests"]
    script = (TOP / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in script if line in set_up] == set_up
    assert [line for line in script if "nox -s" in line][-1] == set_up[-1]


def test_a_block_can_be_pasted_into_a_new_clone() -> None:
    """Each makes its environment itself, and waits neither for the demo nor for the tests."""
    demo, install, _playground, tests = blocks("sh")
    own = (demo, install, tests)
    assert all(block.startswith("python3 -m venv --without-pip .venv && ") for block in own)
    assert [len(block.splitlines()) for block in own] == [1, 2, 1]
    assert "nox" not in install


def test_contributing_names_what_is_there() -> None:
    named = re.findall(r"^\| `([^`]+/)`", TEXTS["CONTRIBUTING.md"], re.MULTILINE)
    assert named
    assert all((TOP / folder).is_dir() for folder in named)
