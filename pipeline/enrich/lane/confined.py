"""Runs one command without network, with one folder that it may write to. A script, started by `sandbox`.

    confined.py WRITABLE CPU_SECONDS MEMORY_BYTES KEPT COMMAND ...

New namespaces of the kernel (user, mount, network, processes) hold what the command can reach: no interface but a
loopback that is down, every mount read-only but WRITABLE, nothing below /run, where services listen, nothing of the
folders of users and of temporary files but KEPT, folders with a colon between. WRITABLE stands at PLACE too, where the command
runs: what it writes down of its place is the same on every machine. Exits with 97 where the kernel does not grant all that; the
command is not run then.
"""

import ctypes
import os
import resource
import signal
import struct
import sys

NOT_GRANTED = 97
PLACE = "/tmp/sluice"
"""Where the command finds the folder that it may write to."""

_EMPTIED = ("/run", "/home", "/root", "/tmp", "/var/tmp", "/mnt", "/media")

_CLONE_NEW = 0x10000000 | 0x00020000 | 0x40000000 | 0x20000000 | 0x08000000  # user, mount, network, processes, IPC
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _ATTR_RDONLY = 442, -100, 0x8000, 1
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Confine this process, then run the command in it; its exit code, or 128 + the signal that ended it."""
    writable, seconds, memory, kept, *command = sys.argv[1:]
    try:
        _confine(writable, [writable, *filter(None, kept.split(":"))])
    except OSError as error:
        print(f"confined: {error}", file=sys.stderr)
        return NOT_GRANTED
    child = os.fork()  # the first process of the new namespace: when it ends, so does all that it started
    if child == 0:
        _become(command, int(seconds), int(memory))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if status >= 0 else 128 - status


def _confine(writable: str, kept: list[str]) -> None:
    user, group = os.getuid(), os.getgid()
    _call("unshare", _LIBC.unshare(_CLONE_NEW))
    for name, line in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(line)
    _mount(None, "/", _MS_REC | _MS_PRIVATE)
    _empty(kept)
    os.makedirs(PLACE, exist_ok=True)
    _mount(writable, PLACE, _MS_BIND)
    _set_read_only("/", True, _AT_RECURSIVE)
    _set_read_only(writable, False, 0)
    _set_read_only(PLACE, False, 0)
    os.chdir(PLACE)


def _empty(kept: list[str]) -> None:
    """Cover the folders that hold what is the user's, and lay what is kept of it back in its place."""
    places = {path: os.open(path, os.O_PATH | os.O_DIRECTORY) for path in sorted(kept, key=len)}
    for folder in _EMPTIED:
        if os.path.isdir(folder) and not os.path.islink(folder):
            _call("mount", _LIBC.mount(b"none", folder.encode(), b"tmpfs", 0, b"size=1m"))
    for path, descriptor in places.items():
        os.makedirs(path, exist_ok=True)
        _mount(f"/proc/self/fd/{descriptor}", path, _MS_BIND | _MS_REC)
        os.close(descriptor)


def _become(command: list[str], seconds: int, memory: int) -> None:
    try:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.execve(command[0], command, dict(os.environ))
    except OSError as error:
        print(f"confined: {command[0]}: {error}", file=sys.stderr)
    os._exit(127)


def _mount(source: str | None, target: str, flags: int) -> None:
    _call("mount", _LIBC.mount(source and source.encode(), target.encode(), None, flags, None))


def _set_read_only(path: str, is_read_only: bool, flags: int) -> None:
    wanted = (_ATTR_RDONLY, 0) if is_read_only else (0, _ATTR_RDONLY)
    attributes = ctypes.create_string_buffer(struct.pack("QQQQ", *wanted, 0, 0))
    _call("mount_setattr", _LIBC.syscall(_MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, attributes, 32))


def _call(name: str, result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    sys.exit(main())
