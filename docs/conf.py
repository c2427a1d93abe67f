"""Sphinx configuration. Reference tables come from the code through ``_ext/declarations.py``."""

from __future__ import annotations

import logging
import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

logging.getLogger("pyvips").setLevel(logging.WARNING)  # Sphinx prints what every library logs

project = "imgsvc"
author = "The imgsvc developers"
version = release = version_of("imgsvc")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "declarations",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3

default_role = "code"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
doctest_test_doctest_blocks = ""  # those in docstrings run under pytest
doctest_global_setup = f"""
import os, shutil, tempfile
import imgsvc_core as imgsvc

before, folder = os.getcwd(), tempfile.mkdtemp()
shutil.copytree({str(Path(__file__).parent.parent / "examples" / "pictures")!r}, folder, dirs_exist_ok=True)
os.chdir(folder)
"""
doctest_global_cleanup = """
os.chdir(before)
shutil.rmtree(folder)
"""

html_theme = "furo"
html_title = f"imgsvc {release}"
