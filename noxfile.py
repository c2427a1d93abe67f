"""Everything that checks or shows the project: ``nox -s lint``, ``tests``, ``demo`` and so on.

Each session makes its own environment. Arguments after ``--`` go to the tool that the session runs.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nox

nox.needs_version = ">=2024.10"
nox.options.reuse_venv = "yes"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "types", "docs", "tests"]

PYPROJECT = nox.project.load_toml()
BENCHMARKS = sorted(
    path.stem for path in Path("benchmarks").glob("*.py") if "def main(" in path.read_text(encoding="utf-8")
)

# Of every package what is fast and starts no process.
QUICK = [f"tests/{name}" for name in ("spec", "plan", "adjust", "watermark", "formats/test_sniff.py")]
QUICK += [f"tests/{name}" for name in ("urls", "stores", "batch", "http", "cli")]
LONGER = ["adjust/test_enhance", "plan/test_memory_peaks", "http/cache/test_nodes"]
LONGER += ["batch/test_alibaba_buckets", "stores/test_endpoints"]
LONGER += ["adjust/test_sharpen", "adjust/test_unsharp", "batch/test_again", "http/webhooks/test_engine"]
LONGER += ["http/fetching/test_content_encodings", "http/fetching/test_source_connection"]
LONGER += [f"stores/test_{name}" for name in ("failing_servers", "large_objects", "pool", "retry")]
LONGER += ["stores/test_secrets", "stores/test_tokens"]
QUICK += [f"--ignore=tests/{name}.py" for name in LONGER]
assert all(Path("tests", f"{name}.py").exists() for name in LONGER)
# Half of the files, all of whose tests start processes, need not be collected.
STARTING = ["import subprocess", "service_process import", "support.commands import", "forked_python"]
STARTING += ["http.embedded import"]
QUICK += [
    f"--ignore={path}"
    for path in Path("tests").rglob("test_*.py")
    if any(words in path.read_text(encoding="utf-8") for words in STARTING)
]

SPELLED = ["src", "web/src", "docs", "examples", "tools", "benchmarks"]
SPELLED += ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]


@nox.session
def lint(session: nox.Session) -> None:
    """Style, the direction of imports, and American spelling."""
    install(session, "lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports", env={"PYTHONPATH": "src"})
    session.run("codespell", *SPELLED)


@nox.session
def types(session: nox.Session) -> None:
    """Types, strictly."""
    install(session, "types", package=True)
    session.run("mypy", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests, the examples in docstrings among them."""
    install(session, "test", package=True)
    everything = ["--numprocesses=auto", "--durations=25", "tests"]
    session.run("pytest", *(session.posargs or everything))


@nox.session
def quick(session: nox.Session) -> None:
    """Style, imports, types, and tests of every package that are fast and start no process."""
    install(session, "lint", "types", "test", package=True)
    checks = [["ruff", "check", "--quiet"], ["ruff", "format", "--quiet", "--check"]]
    checks += [["lint-imports"], ["mypy", "--no-error-summary"]]
    fast = ["-m", "not slow and not processes", "--numprocesses=2", "--dist=worksteal", "--quiet", *QUICK]
    # The start of the tests leaves a core to the checks.
    with ThreadPoolExecutor(1) as thread:
        told = [
            thread.submit(session.run, *check, env={"PYTHONPATH": "src"}, silent=True) for check in checks
        ]
        session.run("pytest", *fast, *session.posargs, env={"HYPOTHESIS_PROFILE": "quick"})
    for check in told:
        check.result()


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation in docs/_build/html, after running the examples in it."""
    install(session, "test", "docs", package=True)
    session.run("pytest", "--quiet", "--numprocesses=2", "--dist=loadfile", "docs")
    session.run("sphinx-build", "-W", "--keep-going", "-q", "-b", "html", "docs", "docs/_build/html")
    session.log(f"open {Path('docs/_build/html/index.html').resolve()}")


@nox.session
def links(session: nox.Session) -> None:
    """Links of the documentation that lead out of it: does each answer? Needs a network."""
    install(session, "docs", package=True)
    session.run("sphinx-build", "-q", "-b", "linkcheck", "docs", "docs/_build/links")


@nox.session(venv_backend="none")
def web(session: nox.Session) -> None:
    """The pages of web/: types, style, unit tests, and the built files. Needs npm."""
    for command in (["ci"], ["run", "check"], ["test"], ["run", "build"]):
        session.run("npm", "--prefix", "web", *command, external=True)
    session.run("git", "diff", "--exit-code", "--stat", "src/imgsvc_http/playground", external=True)


@nox.session(venv_backend="virtualenv")  # with pip
def wheel(session: nox.Session) -> None:
    """A wheel in dist/ with the documentation, which ``imgsvc docs`` opens."""
    install(session, "docs", package=True)
    cache = ["-d", "docs/_build/doctrees"]
    session.run("sphinx-build", "-W", "-q", "-b", "html", *cache, "docs", "src/imgsvc_cli/site")
    session.run("python", "-m", "pip", "wheel", "--no-deps", "--wheel-dir", "dist", ".")


@nox.session
def demo(session: nox.Session) -> None:
    """Example pictures of several formats through the library, with a page that shows the results."""
    session.install("-e", ".[heic,faces]")
    session.run("python", "-m", "examples.demo", *session.posargs)


@nox.session
def tables(session: nox.Session) -> None:
    """The tables of the documentation, written into its pages again."""
    session.install("-e", ".[all]")
    session.run("python", "docs/_ext/declarations.py")


@nox.session
def pictures(session: nox.Session) -> None:
    """The pictures of README and the documentation, made again."""
    session.install("-e", ".[all]")
    session.run("python", "-m", "examples.demo", "build/demo")
    shutil.copy("build/demo/sheet.jpg", "docs/images/demo.jpg")
    shutil.copy("build/demo/cover.jpg", "docs/images/cover.jpg")
    session.run("python", "docs/_ext/strips.py")
    session.install("playwright")
    session.run("python", "docs/_ext/playground.py")


@nox.session
def structure(session: nox.Session) -> None:
    """Sizes, import circles, what a picture and a request pass; ``-- --tree PATH`` measures another tree."""
    session.install("-e", ".[all]")
    session.run("python", "tools/structure.py", *session.posargs)
    session.run("python", "-m", "tools.listening", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """All benchmarks, or those named after ``--``: their ratios, and which miss a bound."""
    install(session, "test", package=True)
    failed = []
    for name in session.posargs or BENCHMARKS:
        try:
            session.run("python", "-m", f"benchmarks.{name}")
        except nox.command.CommandFailed:
            failed.append(name)
    if failed:
        session.error(f"failed or missed a bound: {', '.join(failed)}")


def install(session: nox.Session, *groups: str, package: bool = False) -> None:
    """The tools of dependency groups, and where needed the package itself with every optional format."""
    own = ["-e", ".[all]"] if package else []
    session.install(*own, *nox.project.dependency_groups(PYPROJECT, *groups))
