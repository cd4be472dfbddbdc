"""The sandbox: a hostile script changes nothing on the machine, is limited in time, and is not run without a sandbox."""

import io
import json
import os
import shlex
import socket
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.sandbox import sandbox_child
from pipeline.sandbox.sandbox import Limits, SandboxRun, run_confined, unpacked
from pipeline.sandbox.sandbox_child import PLACE
from pipeline.stages.enrich.compiler import unit_worker
from tests.support.paths import ROOT

pytestmark = pytest.mark.usefixtures("sandbox")
SMALL = Limits(cpu_seconds=20, wall_seconds=60, memory_bytes=1 << 28)
LIMITS = Limits(cpu_seconds=20, wall_seconds=60, memory_bytes=4 << 30)


def python(code: str, limits: Limits = LIMITS, tree: Mapping[str, bytes] | None = None) -> SandboxRun:
    return run_confined([sys.executable, "-I", "-c", code], tree or {}, ["/usr/bin", "/bin"], limits)


def test_a_command_writes_to_its_place_alone_and_its_tree_stays_as_it_was(tmp_path: Path) -> None:
    places = ["build/made", "source/new", "source/given", f"{tmp_path}/x", "/usr/x", "/etc/x", "/x", "/tmp/x", "/dev/x"]
    run = python(
        f"""
import os
for path in {places!r}:
    try:
        open(path, "w").write("changed")
        print(path)
    except OSError:
        pass
os.symlink("/etc/passwd", "build/link")
os.mkfifo("build/pipe")
""",
        tree={"source/given": b"given"},
    )

    assert run.output.splitlines() == ["build/made", "source/new", "source/given"]
    assert run.made == {"build/made": b"changed", "source/new": b"changed"}
    assert list(tmp_path.iterdir()) == []


def test_a_command_sees_no_home_no_environment_no_process_no_socket_and_no_disk(tmp_path: Path) -> None:
    secret, service = tmp_path / "secret.txt", socket.socket(socket.AF_UNIX)
    secret.write_text("hidden")
    service.bind(str(tmp_path / "service"))
    service.listen()
    server = socket.create_server(("127.0.0.1", 0))
    addresses = [(int(socket.AF_INET), server.getsockname()), (int(socket.AF_UNIX), str(tmp_path / "service"))]
    run = python(f"""
import os, socket
print(os.path.exists({str(secret)!r}), os.listdir(os.path.expanduser("~")), os.path.exists("/home"), os.path.exists("/etc/passwd"))
print(sorted(name for name in os.environ if name not in {("LC_CTYPE",)!r}))
print(os.getpid(), len([name for name in os.listdir("/proc") if name.isdigit()]), socket.gethostname())
print(sorted(os.listdir("/dev")), os.path.exists("/sys"), os.path.exists("/var"), os.path.exists("/run"))
for family, address in {addresses}:
    try:
        socket.socket(family).connect(address)
        print("connected")
    except OSError:
        print("refused")
""")
    server.close()
    service.close()

    assert run.output.splitlines() == [
        "False [] False False",
        "['HOME', 'LC_ALL', 'PATH', 'SOURCE_DATE_EPOCH', 'TMPDIR', 'TZ', 'XDG_CACHE_HOME', 'ZIG_GLOBAL_CACHE_DIR', "
        "'ZIG_LOCAL_CACHE_DIR']",
        "2 2 sluice",
        "['full', 'null', 'random', 'urandom', 'zero'] False False False",
        "refused",
        "refused",
    ]


def test_a_command_cannot_take_the_sandbox_apart() -> None:
    run = python(f"""
import ctypes, os
libc = ctypes.CDLL(None)
libc.prctl(24, 0)
tried = {{
    "umount": libc.umount2(b"/tmp", 2),
    "remount": libc.mount(None, b"/", None, 0x1020, None),
    "bind": libc.mount(b"/proc", b"{PLACE}", None, 0x1000, None),
    "namespace": libc.unshare(0x10000000),
    "chroot": libc.chroot(b"{PLACE}"),
    "root": libc.setuid(0),
    "keeper": libc.ptrace(16, 1, 0, 0),
}}
print([name for name, result in tried.items() if result == 0])
for path in ("/proc/1/environ", "/proc/1/root", "/proc/1/mem", "/proc/1/fd"):
    try:
        print(path, os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1))
    except OSError:
        pass
os.kill(1, 9)
os.kill(1, 2)
print("caps", [line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapEff", "CapPrm", "CapBnd"))])
""")

    assert run.failure == ""
    assert run.output.splitlines() == ["[]", f"caps {['0' * 16] * 3}"]


@pytest.mark.parametrize(
    ("code", "limits", "failure"),
    [
        ("import time; time.sleep(600)", Limits(5, 1, 1 << 30), "timeout"),
        ("while True: pass", Limits(1, 60, 1 << 30), "failed"),
        ("while True: print('x' * 9999)", LIMITS, "endless_output"),
        ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", LIMITS, "too_many_processes"),
        ("open('build/x', 'wb').truncate(3 << 30)", LIMITS, "failed"),
        (
            "import os\nfor n in range(3): os.posix_fallocate(open(f'build/{n}', 'wb').fileno(), 0, 1 << 30)",
            LIMITS,
            "failed",
        ),
        (
            "import os\nopen('build/x', 'w')\nfor n in range(60_000): os.link('build/x', f'build/{n}')",
            LIMITS,
            "too_much_made",
        ),
        ("import os, time\nfor n in range(6): os.fork()\nx = b'x' * (9 << 20)\ntime.sleep(60)", SMALL, "out_of_memory"),
    ],
)
def test_what_has_no_end_is_ended(code: str, limits: Limits, failure: str) -> None:
    assert python(code, limits).failure == failure


def test_where_the_kernel_grants_no_sandbox_nothing_is_run() -> None:
    """Inside of a sandbox no other can be had."""
    script = Path(sandbox_child.__file__).read_bytes()
    run = python(
        "import json, subprocess, sys\n"
        "job = dict(command=['/bin/touch', 'build/ran'], environment={}, kept=[])\n"
        "job |= dict(cpu_seconds=5, wall_seconds=5, memory_bytes=1 << 30, file_bytes=1 << 30)\n"
        "ended = subprocess.run([sys.executable, '-I', 'source/sandbox_child.py', json.dumps(job)],"
        "capture_output=True, text=True)\n"
        "print(ended.returncode, ended.stdout, ended.stderr)\n",
        tree={"source/sandbox_child.py": script},
    )

    assert run.output.startswith(f"{sandbox_child.NOT_GRANTED}  the kernel refused: ")
    assert run.made == {}


@pytest.mark.parametrize("script", ["sandbox_child", "unit_worker"])
def test_a_limit_that_holds_already_is_lowered_and_never_raised(script: str, tmp_path: Path) -> None:
    """Those of a user are often below what a command may use."""
    arguments, given, expected = ["-c", f"import {__name__} as t; print(t.python('print(1 + 1)').output)"], "", "2"
    if script == "unit_worker":
        pytest.importorskip("clang", reason="libclang is not installed")
        (tmp_path / "a.c").write_text("int a;\n")
        job = {
            "unit": "a.c",
            "arguments": [],
            "files": ["a.c"],
            "with_bodies": False,
            "cpu_seconds": 20,
            "memory_bytes": 1 << 31,
        }
        arguments, given, expected = [unit_worker.__file__], json.dumps(job), '{"reads": ["a.c"], "num_errors": 0'
    limited = f"ulimit -f 65536; ulimit -u 4000; exec {shlex.join([sys.executable, *arguments])}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        ["bash", "-c", limited], input=given, capture_output=True, text=True, cwd=tmp_path, env=environment
    )

    assert ended.stdout.startswith(expected), ended.stderr


def test_a_name_that_no_file_system_holds_costs_its_file_alone() -> None:
    run = python(
        "import os; print(os.listdir('source'))", tree={"source/" + "x" * 260: b"", "source/a": b"", "source/a/b": b""}
    )

    assert (run.failure, run.output) == ("", "['a']\n")


def test_what_the_command_made_unreadable_is_taken_as_well() -> None:
    run = python("""
import os
os.mkdir("build/closed")
for path in ("build/x", "build/closed/y"):
    open(path, "w").write(path)
for path in ("build/x", "build/closed/y", "build/closed", "build"):
    os.chmod(path, 0)
""")

    assert (run.failure, run.made) == ("", {"build/x": b"build/x", "build/closed/y": b"build/closed/y"})


def test_of_an_archive_only_files_below_the_folders_that_are_taken_are_read() -> None:
    given = io.BytesIO()
    names = [
        "build/a",
        "source/b/c",
        "build",
        "/build/d",
        "../build/e",
        "build/../f",
        "build/g/..",
        "tools/h",
        "./build/i",
    ]
    with tarfile.open(fileobj=given, mode="w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))

    assert sorted(unpacked(given)) == ["build/a", "source/b/c"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_root_that_cannot_become_nobody_runs_nothing_and_reports_which_step_was_refused() -> None:
    job = {
        "command": ["/bin/true"],
        "environment": {},
        "kept": [],
        "cpu_seconds": 5,
        "wall_seconds": 5,
        "memory_bytes": 1 << 30,
        "file_bytes": 1 << 30,
    }
    arguments = [sys.executable, "-I", sandbox_child.__file__, json.dumps(job)]
    code = f"import ctypes, os; assert ctypes.CDLL(None).prctl(24, 7, 0, 0, 0) == 0; os.execv({arguments[0]!r}, {arguments!r})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL)

    assert ended.returncode == sandbox_child.NOT_GRANTED
    assert "mapping ids" in ended.stderr
