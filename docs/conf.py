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
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "declarations",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

default_role = "code"
smartquotes = False  # JSON in tables can be copied
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

templates_path = ["_templates"]
html_theme = "furo"
pygments_dark_style = "github-dark"  # Furo's own underlines names of modules
html_title = f"imgsvc {release}"
html_logo = html_favicon = "../examples/pictures/logo.svg"
html_theme_options = {
    "top_of_page_buttons": [],
    "light_css_variables": {"color-brand-primary": "#5b3f9e", "color-brand-content": "#5b3f9e"},
    "dark_css_variables": {"color-brand-primary": "#b9a3f5", "color-brand-content": "#b9a3f5"},
}
html_static_path = ["_static"]
html_extra_path = ["404.html"]  # for hosts that show it where no page is
html_css_files = ["pictures.css"]
html_js_files = ["tables.js", "scrolled.js"]
html_show_copyright = False
