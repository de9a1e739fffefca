"""Sphinx: the pages here, and references that are generated from schemas and docstrings (`generate.py`)."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from generate import write_references  # noqa: E402

project = "dask_uncert"
author = "The dask_uncert developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "matplotlib.sphinxext.plot_directive"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "dask_uncert"
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist"]
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False
plot_formats = [("png", 110)]
plot_html_show_formats = plot_html_show_source_link = False
plot_include_source = False
plot_pre_code = f"__file__ = {str(HERE.parent / 'examples' / 'script.py')!r}"
nitpicky = False

write_references(HERE / "generated")
