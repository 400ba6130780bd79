"""Run a command until nobody holds a lock: `keeper.py USERS_LOCK SERVER_LOCK DATA_DIR SOCKET_DIR UID GID COMMAND...`.

`server.py` starts this file as a process of its own, with PostgreSQL as the command. Every process that
uses the server holds a shared lock on USERS_LOCK, which the kernel drops when the process ends, killed or not.
The keeper waits for an exclusive lock; once it has it there is no user left and it stops the server.
SERVER_LOCK is the number of an open file whose lock the server inherits: held as long as any process of it lives.
It imports the standard library alone, so that it stays small.
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
        # It is entered as root and stays open to a user who could not reach it.
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
    """Ask PostgreSQL for a fast shutdown: sessions end, nothing that was committed is lost."""
    server.send_signal(signal.SIGINT)


def _stop_when_free(users_lock: str, server: "subprocess.Popen[bytes]") -> None:
    """Wait until no user is left, then stop. The lock is held until this process ends: nobody starts meanwhile."""
    fcntl.flock(os.open(users_lock, os.O_RDONLY), fcntl.LOCK_EX)
    stop(server)


def _main(users_lock: str, server_lock: str, data_dir: str, socket_dir: str, *rest: str) -> int:
    uid, gid, *command = rest
    status = keep(users_lock, int(server_lock), (int(uid), int(gid)), data_dir, command)
    # Only a folder that was made for the socket is empty now and goes.
    with contextlib.suppress(OSError):
        os.rmdir(socket_dir)  # noqa: PTH106 -- pathlib would double this process's memory
    return status


if __name__ == "__main__":
    # A grandchild of the process that started it: nobody has to collect it.
    if os.fork():
        os._exit(0)
    sys.exit(_main(*sys.argv[1:]))
