"""Script that runs one command isolated from the machine. `sandbox` starts it.

    sandbox_child.py JOB    JOB: {"command", "environment", "kept", "cpu_seconds", "wall_seconds", "memory_bytes", "file_bytes"}

The command has new namespaces (user, mount, network, processes, IPC, names) and a file system that holds only: the system's
programs and libraries and the folders `kept`, all read-only; five devices; its own processes; and PLACE, the one folder that
can be written to, in memory and of a fixed size. It has no network interface but a loopback that is down, no socket of a
service, no home, no environment but the given one, no capabilities, and can create no namespaces.

The tree is read from stdin and the files that the command created are written to stdout, both as tar: the two sides share no
folder. The result is written to stderr as JSON. If the kernel does not grant all of this, nothing is run: the script exits with
NOT_GRANTED and a message.
"""

import ctypes
import errno
import json
import os
import platform
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NOT_GRANTED = 97
PLACE = "/tmp/sluice"
"""Folder of the command's tree, the same on every machine."""
TAKEN = ("build", "source")
"""Folders of PLACE whose new files are returned."""

MAX_WRITTEN_BYTES = 2 << 30
"""Size of PLACE in addition to the tree."""
MAX_TAKEN_BYTES = 256 << 20
MAX_NUM_TAKEN = 50_000
MAX_OUTPUT_BYTES = 16 << 20
MAX_NUM_PROCESSES = 512
MAX_RESIDENT_BYTES = 4 << 30
"""Memory of all processes together."""

NAME_ERRORS = frozenset({errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST})
"""Errors of a name that is too long or already taken by a folder or file: such a file is left out."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache", "/nix/store")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_BASE = "/tmp"
"""Folder in which the new root is assembled; the old root is unmounted later."""
_INNER_ID, _NOBODY = 1000, 65534
_MAX_NUM_THREADS, _KEPT_OUTPUT_BYTES = 8192, 1 << 20
_POLL_SECONDS = 0.1
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})

_CLONE_NEW = 0x10000000 | 0x00020000 | 0x40000000 | 0x20000000 | 0x08000000 | 0x04000000
"""User, mount, network, processes, IPC and names."""
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x1000, 0x4000, 0x40000
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 442, -100, 0x8000, 1, 2, 4
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
_LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Create the namespaces, and run the command from their first process."""
    job = json.loads(sys.argv[1])
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        _unshare()
    except OSError as error:
        return _refused(error)
    first = os.fork()  # when it ends, so does all that it started
    if first == 0:
        os._exit(_keep(job))
    return max(0, os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]))


def _refused(error: OSError) -> int:
    print(f"the kernel refused: {error}", file=sys.stderr, flush=True)
    return NOT_GRANTED


@contextmanager
def _step(name: str) -> Iterator[None]:
    """Add the name of the step to what the kernel refuses in the block."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"{name}: {os.strerror(error.errno or 0)}") from None


def _unshare() -> None:
    """Create the namespaces. The command runs as nobody if root calls, else as the caller."""
    user, group = os.getuid(), os.getgid()
    is_root = user == 0 and _has_nobody()
    reading, writing = os.pipe()
    helper = os.fork() if is_root else 0
    if is_root and helper == 0:
        os.close(writing)
        os._exit(_map_nobody(os.getppid(), reading))
    failure = 0
    try:
        _call("unshare", _LIBC.unshare(_CLONE_NEW))
        os.write(writing, b"!")
    finally:
        os.close(writing)
        if helper:
            failure = os.waitstatus_to_exitcode(os.waitpid(helper, 0)[1])
    if failure:  # never as root instead: what limits the number of processes does not hold for root
        raise OSError(failure, f"mapping ids, so that root becomes nobody: {os.strerror(failure)}")
    if not is_root:
        with _step("mapping ids"):
            _map("self", f"{_INNER_ID} {user} 1", f"{_INNER_ID} {group} 1")
    with _step("sethostname"):
        socket.sethostname("sluice")


def _has_nobody() -> bool:
    """Return whether the user nobody exists. The root of a container without it is not root outside of the container."""
    ranges = (line.split() for line in Path("/proc/self/uid_map").read_text(encoding="utf-8").splitlines())
    return any(int(start) <= _NOBODY < int(start) + int(length) for start, _, length in ranges)


def _map_nobody(process: int, reading: int) -> int:
    """Map the command's user to nobody, from outside and as root. Return the number of the error, or 0."""
    try:
        if os.read(reading, 1):
            line = f"0 0 1\n{_INNER_ID} {_NOBODY} 1"
            _map(str(process), line, line)
    except OSError as error:
        return error.errno or errno.EPERM
    return 0


def _map(process: str, users: str, groups: str) -> None:
    for name, lines in (("setgroups", "deny"), ("uid_map", users), ("gid_map", groups)):
        Path(f"/proc/{process}/{name}").write_bytes(lines.encode())


def _keep(job: dict[str, Any]) -> int:
    """Build the root, run the command under supervision, and write its files and the result after all its processes ended."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    try:
        _build_root(job["kept"], os.fstat(0).st_size + MAX_WRITTEN_BYTES)
        _become_nobody()
    except OSError as error:
        return _refused(error)
    try:
        given = _unpack()
    except OSError as error:
        return _finish("out_of_space" if error.errno in _NO_SPACE else "tree_not_laid_out", str(error).encode())
    failure, output, exit_code = _watch(job, *_start(job))
    return _finish(failure or _pack(given), output, exit_code)


def _become_nobody() -> None:
    for capability in range(64):
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    with _step("setresgid"):
        os.setresgid(_INNER_ID, _INNER_ID, _INNER_ID)
    with _step("setresuid"):
        os.setresuid(_INNER_ID, _INNER_ID, _INNER_ID)
    _LIBC.prctl(_PR_SET_DUMPABLE, 0)  # the command is the same user, and is not to look into this process
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # forgotten with each change of the user


def _finish(failure: str, output: bytes, exit_code: int = 0) -> int:
    result = {"failure": failure, "output": output.decode("utf-8", "replace"), "exit_code": exit_code}
    print(json.dumps(result), file=sys.stderr, flush=True)
    return 0


def _build_root(kept: list[str], num_bytes: int) -> None:
    owner = f"uid={_INNER_ID},gid={_INNER_ID}"
    places = {path: os.open(path, os.O_PATH | os.O_DIRECTORY) for path in sorted(kept)}
    _mount(None, "/", _MS_REC | _MS_PRIVATE)
    _mount("none", _BASE, _MS_NOSUID | _MS_NODEV, "tmpfs", f"size=4m,mode=755,{owner}")
    shown = [path for path in _SYSTEM if os.path.lexists(path) and not path.startswith(_BASE)]
    for path in shown:
        _show(path)
    for path, descriptor in places.items():
        if not any(path == top or path.startswith(f"{top}/") for top in shown):
            os.makedirs(_BASE + path, exist_ok=True)
            _mount(f"/proc/self/fd/{descriptor}", _BASE + path, _MS_BIND | _MS_REC)
        os.close(descriptor)
    for folder in ("/dev", "/proc", PLACE):
        os.makedirs(_BASE + folder, exist_ok=True)
    for name in _DEVICES:
        Path(f"{_BASE}/dev/{name}").touch()
    _set_attributes(_BASE, _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, _AT_RECURSIVE)
    for name in _DEVICES:
        _mount(f"/dev/{name}", f"{_BASE}/dev/{name}", _MS_BIND)
    _mount("none", _BASE + PLACE, _MS_NOSUID | _MS_NODEV, "tmpfs", f"size={num_bytes},nr_inodes=1m,mode=755,{owner}")
    _mount("none", f"{_BASE}/proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "proc")
    with _step("max_user_namespaces"):
        Path(f"{_BASE}/proc/sys/user/max_user_namespaces").write_bytes(b"0")
    _set_attributes(f"{_BASE}/proc", _ATTR_RDONLY, 0)
    _enter(_BASE)


def _show(path: str) -> None:
    """Mount a folder, file or link of the system at the same path of the new root."""
    place = Path(_BASE + path)
    place.parent.mkdir(parents=True, exist_ok=True)
    if os.path.islink(path):
        place.symlink_to(os.readlink(path))
        return
    if os.path.isdir(path):
        place.mkdir()
    else:
        place.touch()
    _mount(path, str(place), _MS_BIND | _MS_REC)


def _enter(root: str) -> None:
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(0, f"no number of pivot_root is known for {platform.machine()}")
    os.chdir(root)
    _call("pivot_root", _LIBC.syscall(number, b".", b"."))
    _call("umount", _LIBC.umount2(b".", _MNT_DETACH))
    os.chdir(PLACE)


def _unpack() -> frozenset[str]:
    """Write the tree and return the names of its files, without those that no file system can hold."""
    for name in (*TAKEN, "home", "tmp"):
        os.mkdir(name)
    names = set()
    with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as tree:
        for member in tree:
            content = tree.extractfile(member)
            if content is None:
                continue
            try:
                os.makedirs(os.path.dirname(member.name) or ".", exist_ok=True)
                with open(member.name, "wb") as file:
                    shutil.copyfileobj(content, file)
            except OSError as error:
                if error.errno in NAME_ERRORS:
                    continue
                raise
            os.chmod(member.name, member.mode)
            names.add(member.name)
    return frozenset(names)


def _start(job: dict[str, Any]) -> tuple[int, int]:
    """Start the command; return its process and the pipe end to read its output from."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        _become(job)
    os.close(writing)
    return child, reading


def _become(job: dict[str, Any]) -> None:
    try:
        os.setsid()
        _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        lower_limits(job)
        _lower(resource.RLIMIT_NPROC, _MAX_NUM_THREADS)
        os.closerange(3, 4096)
        os.execve(job["command"][0], job["command"], job["environment"])  # not as root: capabilities end here
    except (OSError, ValueError) as error:
        print(f"sandbox_child: {job['command'][0]}: {error}", file=sys.stderr, flush=True)
    os._exit(127)


def lower_limits(job: Mapping[str, Any]) -> None:
    """Set the limits of this process and its children to those of a job."""
    _lower(resource.RLIMIT_CPU, job["cpu_seconds"])
    _lower(resource.RLIMIT_AS, job["memory_bytes"])
    _lower(resource.RLIMIT_FSIZE, job["file_bytes"])
    _lower(resource.RLIMIT_CORE, 0)


def _lower(limit: int, value: int) -> None:
    hard = resource.getrlimit(limit)[1]  # never above the limit already in force
    resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard),) * 2)


def _watch(job: dict[str, Any], child: int, reading: int) -> tuple[str, bytes, int]:
    """Wait until the command ends or exceeds a limit, then kill all its processes; return failure, output and exit code."""
    output, num_bytes = bytearray(), 0
    failure: str | None = None
    exit_code: int | None = None
    deadline = time.monotonic() + job["wall_seconds"]
    next_look = 0.0
    while failure is None and exit_code is None:
        if select.select([reading], [], [], _POLL_SECONDS)[0]:
            block = os.read(reading, 1 << 16)
            num_bytes += len(block)
            output += block[: _KEPT_OUTPUT_BYTES - len(output)]
            if not block:
                time.sleep(_POLL_SECONDS / 10)
        now = time.monotonic()
        exit_code = _exit_code(child)
        if exit_code is not None:
            # Also after 0: cmake goes on when a script failed.
            failure = _excess(job) or ("failed" if exit_code else "")
        elif num_bytes > MAX_OUTPUT_BYTES:
            failure = "endless_output"
        elif now > deadline:
            failure = "timeout"
        elif now > next_look:
            failure, next_look = _excess(job), now + _POLL_SECONDS
    _end_all()
    while select.select([reading], [], [], 0)[0] and (block := os.read(reading, 1 << 16)):
        output += block[: _KEPT_OUTPUT_BYTES - len(output)]
    return failure or "", bytes(output), exit_code or 0


def _exit_code(child: int) -> int | None:
    """Return the exit code of the command, or None while it runs. Other processes that ended are reaped."""
    while True:
        found, status = os.waitpid(-1, os.WNOHANG)
        if found == 0:
            return None
        if found == child:
            return os.waitstatus_to_exitcode(status)


def _excess(job: dict[str, Any]) -> str | None:
    """Return the name of the limit that the processes of the command exceed together, or None."""
    processes = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    if len(processes) > MAX_NUM_PROCESSES:  # before they are read: among so many, that would take half a minute
        return "too_many_processes"
    pages = 0
    for name in processes:
        try:
            pages += int(Path(f"/proc/{name}/statm").read_bytes().split()[1])
        except (OSError, IndexError):
            continue
    if pages * resource.getpagesize() > min(MAX_RESIDENT_BYTES, job["memory_bytes"]):
        return "out_of_memory"
    room = os.statvfs(".")
    return "out_of_space" if room.f_bavail < 16 or room.f_favail < 16 else None


def _end_all() -> None:
    """Kill all processes at once and reap them: a kill of all for each of thousands took half a minute. None can fork any more."""
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(-1, signal.SIGKILL)
        while True:
            os.waitpid(-1, 0)


def _pack(given: frozenset[str]) -> str:
    """Write the regular files that the command created, not those of the tree that it changed. Return the failure or ""."""
    num_files = num_bytes = 0
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT) as made:
        for path, size in _regular_files():
            if path in given:
                continue
            num_files, num_bytes = num_files + 1, num_bytes + size
            if num_files > MAX_NUM_TAKEN or num_bytes > MAX_TAKEN_BYTES:
                return "too_much_made"
            member = tarfile.TarInfo(path)
            member.size = size
            try:
                os.chmod(path, 0o600)  # it may be unreadable, and belongs to this user
                with open(path, "rb") as file:
                    made.addfile(member, file)
            except OSError:
                return "unreadable_made"
    sys.stdout.flush()
    return ""


def _regular_files() -> Iterator[tuple[str, int]]:
    for top in TAKEN:
        _open_folder(top)
        for folder, folders, names in os.walk(top):
            folders.sort()
            for name in folders:
                _open_folder(os.path.join(folder, name))
            for name in sorted(names):
                path = os.path.join(folder, name)
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode):
                    yield path, status.st_size


def _open_folder(path: str) -> None:
    """Make a folder readable before it is walked."""
    with suppress(OSError):
        if not os.path.islink(path):
            os.chmod(path, 0o700)


def _mount(source: str | None, target: str, flags: int, kind: str | None = None, options: str | None = None) -> None:
    texts = [text and text.encode() for text in (source, target, kind, options)]
    _call(f"mount {target}", _LIBC.mount(*texts[:3], flags, texts[3]))


def _set_attributes(path: str, added: int, flags: int) -> None:
    attributes = ctypes.create_string_buffer(struct.pack("QQQQ", added, 0, 0, 0))
    _call("mount_setattr", _LIBC.syscall(_MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, attributes, 32))


def _call(name: str, result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    sys.exit(main())
