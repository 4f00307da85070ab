"""The documentation site: ``python -m sphinx -W docs docs/_build``."""

from __future__ import annotations

import sys
from configparser import ConfigParser
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

from sphinx_gallery.sorting import ExplicitOrder

import skmc

project = "skmc"
author = "The skmc developers"
project_copyright = "The skmc developers, BSD-3-Clause"
release = version = skmc.__version__
package = ConfigParser()
package.read(DOCS.parent / "setup.cfg")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "mathml",
    "literal_or_name",
    "matrix_figures",
    "api_pages",
    "command_options",
    "stored_pictures",
]
exclude_patterns = [
    "_build",
    "_ext",
    "figures",
    "Thumbs.db",
]
default_role = "name"

# Markdown
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Docstrings
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_use_plots = False
# Docstrings inherited from scikit-learn refer to its glossary, torch's to its names.
suppress_warnings = ["ref.term"]
nitpick_ignore = [("py:class", "Module"), ("py:obj", "n_features_in_")]
# "See Also" names functions of other packages, to which the site has no links.
nitpick_ignore_regex = [("py:obj", r"(sklearn|torch)\..*")]

# `-t online` links to these sites, whose lists of names it downloads. Without it, the
# build needs no network.
intersphinx_mapping = {}
if tags.has("online"):  # noqa: F821
    intersphinx_mapping = {
        "matplotlib": ("https://matplotlib.org/stable", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "python": ("https://docs.python.org/3", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "torch": ("https://docs.pytorch.org/docs/stable", None),
    }
    intersphinx_timeout = 30

# Copied code has no prompts and no output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Figures of the pages: the files in docs/figures run during the build.
plot_basedir = str(DOCS / "figures")
plot_formats = [("png", 100)]
plot_include_source = False
plot_html_show_formats = False
plot_html_show_source_link = False
plot_rcparams = {"figure.constrained_layout.use": True, "axes.titlesize": "medium"}
plot_apply_rcparams = True

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": [
        f"../examples/{section}"
        for section in (
            "tables",
            "pictures",
            "ratings",
            "series_panels",
            "omics",
            "uncertainty",
            "extending",
        )
    ],
    # What most readers look for comes first in its section.
    "within_subsection_order": ExplicitOrder(
        [
            "plot_mixed_table.py",
            "plot_beside_scikit_learn.py",
            "plot_scratched_photo.py",
            "plot_recommend_films.py",
            "plot_pooled_estimate.py",
            "*",
        ]
    ),
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("skmc",),
    "reference_url": {"skmc": None},
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 10**6,  # times depend on the machine that builds
    "remove_config_comments": True,
    # `-t quick` shows the examples without running them.
    "plot_gallery": not tags.has("quick"),  # noqa: F821
    "parallel": False,
}

# Pages
html_theme = "pydata_sphinx_theme"
html_title = "skmc"
html_favicon = "_static/skmc.svg"
html_logo = "_static/skmc.svg"
repository = package["metadata"]["url"]
html_context = {
    "default_mode": "auto",
    "edit_page_url_template": f"{repository}/edit/main/docs/{{{{ file_name }}}}",
    "edit_page_provider_name": "the repository",
}
toc_object_entries_show_parents = "hide"
html_static_path = ["_static"]
html_css_files = ["skmc.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": f"skmc {release}", "alt_text": "skmc"},
    "icon_links": [
        {
            "name": "Repository",
            "url": repository,
            "icon": "fa-solid fa-code-branch",
        }
    ],
    "navigation_with_keys": False,
    "show_prev_next": False,
    "use_edit_page_button": True,
    "secondary_sidebar_items": ["page-toc", "edit-this-page"],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
