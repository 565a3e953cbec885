"""Sphinx settings: ``sphinx-build -b html -W docs docs/_build/html``."""

import re
import textwrap
from importlib.metadata import version as installed_version

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from docutils.utils.math.unichar2tex import uni2tex_table

project = "diagatt"
author = "The diagatt developers"
release = version = installed_version("diagatt")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections say what a parameter is
numpydoc_show_class_members = False  # the class template lists them

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"readme_",
    "capture_repr": (),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
}

html_theme = "furo"
html_title = f"diagatt {release}"
html_static_path = ["_static"]
html_css_files = ["formulas.css"]
html_copy_source = False
html_show_copyright = False
html_math_renderer = "mathml"  # browsers draw MathML themselves: no script, no network

# Letters are left as they are; of signs, MathML is made from their TeX names.
SIGNS = {code: tex + " " for code, tex in uni2tex_table.items() if not chr(code).isalpha()}
SIGNS |= {ord("·"): r"\cdot ", ord("½"): r"\tfrac{1}{2}"}


def to_mathml(tex, as_block):
    """MathML of a formula that may hold Unicode signs, as docstrings do."""
    tex = re.sub("(.)\u0303", r"\\tilde{\1}", tex)  # combining tilde
    tex = re.sub(r"\\([Bb]igg?m?|textstyle)(?![a-z])", "", tex)  # sizes take care of themselves
    # The converter reads the numerator 12 in \frac12, and sets the index of \hat j_r below j.
    tex = re.sub(r"(\\[dt]?frac)(\d)(\d)", r"\1{\2}{\3}", tex)
    tex = re.sub(r"(\\(?:hat|tilde) ?(?:\{[^{}]*\}|\w))(?=[_^])", r"{\1{}}", tex)
    return tex2mathml(tex.translate(SIGNS), as_block)


def visit_math(translator, node):
    """Write an inline formula."""
    translator.body.append(to_mathml(node.astext(), False))
    raise nodes.SkipNode


def visit_math_block(translator, node):
    """Write a displayed formula."""
    formula = to_mathml(node.astext(), True)
    translator.body.append(f'<div class="math">{formula}</div>\n')
    raise nodes.SkipNode


def skip_inherited_from_sklearn(app, what, name, member, skip, options):
    """Leave out what scikit-learn adds to every estimator: it is explained there."""
    module = getattr(member, "__module__", None) or ""
    return True if module.startswith("sklearn.") else None


def join_continued_lines(app, what, name, obj, options, lines):
    """Join lines that end with a backslash: the next one may begin at the margin."""
    text = re.sub(r"\\\n\s*", "", "\n".join(lines[1:]))
    lines[1:] = textwrap.dedent(text).split("\n") if lines[1:] else []


def lead_to_pages(app, docname, source):
    """Let links to a table of results lead to the page that includes it."""
    source[0] = re.sub(r"\]\(\.\./(results/bags\.md)", r"](\1", source[0])


def setup(app):
    """Register the formulas and the rules."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.connect("source-read", lead_to_pages)
    app.connect("autodoc-process-docstring", join_continued_lines, priority=100)  # before numpydoc
    app.connect("autodoc-skip-member", skip_inherited_from_sklearn)
