"""Sphinx: MyST pages, one theme, equations as MathML, so that a page needs no script and no network."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).parent / "_sphinx"))

project = "clover-ops"
author = copyright = "the clover-ops authors"
version = release = (ROOT / "common" / "clover_ops" / "_version.py").read_text(encoding="utf-8").split('"')[-2]

extensions = ["myst_parser", "mathml"]
exclude_patterns = ["_sphinx"]
myst_enable_extensions = ["dollarmath", "attrs_block"]
myst_heading_anchors = 3
# A page that another part of the project has yet to bring, or a folder without any, is no mistake.
suppress_warnings = ["toc.empty_glob"]

html_theme = "furo"
html_title = f"clover-ops {version}"
html_math_renderer = "mathml"
html_show_sourcelink = False
