"""Where Chromium is."""

import shutil


def chromium_path():
    """Return where Chromium is, or None; one without windows takes half of the processor time."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")
