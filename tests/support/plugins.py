"""Packages with a dialect, as their users install them."""

from __future__ import annotations

from pathlib import Path

from imgsvc_urls.dialects import GROUP


def install(folder: Path, name: str, target: str, module: str) -> None:
    """Write a package into a folder of the import path: a module with a dialect, and its entry point."""
    (folder / f"{target.partition(':')[0]}.py").write_text(module)
    installed = folder / f"{name}-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {target}\n")
