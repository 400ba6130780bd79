"""Processes that end with the one that started them."""

import shutil
import signal


def ends_with_parent(number: signal.Signals) -> tuple[str, ...]:
    """Return a prefix of a command that sends it this signal when its parent is killed, where the system has one."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", number.name.removeprefix("SIG"), "--") if setpriv else ()
