"""How the pages become a site: ``make docs``, into build/site.

Pages are written for those who read them where they lie, in the repository, so the whole
repository is the source: links from page to page, to a decision or to a file of code hold there
and here.
"""

from outrider import __version__

project = "Outrider"
author = "The Outrider authors"
release = version = __version__

extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "bench/README.md", "locks/licences.md"]
exclude_patterns = ["docs/pictures/**"]

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4  # a link may name a heading, and is checked
suppress_warnings = ["myst.header"]  # a page may leave out a level of headings

html_theme = "furo"
html_title = f"Outrider {release}"
html_copy_source = False
html_show_sphinx = False
nitpicky = True
