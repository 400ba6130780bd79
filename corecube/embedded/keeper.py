"""Runs a command while any process holds a lock.

Usage: `keeper.py USERS_LOCK SERVER_LOCK DATA_DIR SOCKET_DIR UID GID COMMAND...`.

`server.py` starts this file as a separate process, with PostgreSQL as the command. Every process that uses the server
holds a shared lock on USERS_LOCK, which the kernel releases when the process ends. The keeper waits for an exclusive
lock; when it gets it, there are no users left, and it stops the server. SERVER_LOCK is the descriptor of an open file
whose lock all processes of the server inherit. Only the standard library is imported, to save memory.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading


def keep(users_lock: str, server_lock: int, account: tuple[int, int], folder: str, command: list[str]) -> int:
    """Run the command in a folder as this user and group until the lock is free; return its exit status."""
    uid, gid = account
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    is_root = os.geteuid() == 0
    server = subprocess.Popen(  # noqa: S603 -- our own program
        command,
        # Entered as root, because the user may have no access to the parent directories.
        cwd=folder,
        pass_fds=[server_lock],
        stdin=subprocess.DEVNULL,
        user=uid if is_root else None,
        group=gid if is_root else None,
        extra_groups=[] if is_root else None,
    )
    signal.signal(signal.SIGTERM, lambda *_: stop(server))
    threading.Thread(target=_stop_when_free, args=(users_lock, server), daemon=True).start()
    return server.wait()


def stop(server: "subprocess.Popen[bytes]") -> None:
    """Request a fast shutdown of PostgreSQL, without loss of committed data."""
    server.send_signal(signal.SIGINT)


def _stop_when_free(users_lock: str, server: "subprocess.Popen[bytes]") -> None:
    """Wait until no user is left, then stop. The lock is held until this process ends, to prevent a new start."""
    fcntl.flock(os.open(users_lock, os.O_RDONLY), fcntl.LOCK_EX)
    stop(server)


def _main(users_lock: str, server_lock: str, data_dir: str, socket_dir: str, *rest: str) -> int:
    uid, gid, *command = rest
    status = keep(users_lock, int(server_lock), (int(uid), int(gid)), data_dir, command)
    # Removes only a separate folder of the socket, which is empty now.
    with contextlib.suppress(OSError):
        os.rmdir(socket_dir)  # noqa: PTH106 -- pathlib would double this process's memory
    return status


if __name__ == "__main__":
    # A grandchild of the starting process, which does not need to reap it.
    if os.fork():
        os._exit(0)
    sys.exit(_main(*sys.argv[1:]))
