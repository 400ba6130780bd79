"""The documentation as a site: `make docs` builds it in build/docs/site."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from corecube.version import VERSION

project = "CoreCube"
release = VERSION
extensions = ["myst_parser"]
exclude_patterns = ["requirements.txt", "screenshots"]
myst_heading_anchors = 4
#: Only the list of decisions is in the navigation; the examples of templates are no HTML yet.
suppress_warnings = ["toc.not_included", "misc.highlighting_failure"]
html_theme = "furo"
html_title = f"CoreCube {VERSION}"
html_copy_source = False
html_show_copyright = False
