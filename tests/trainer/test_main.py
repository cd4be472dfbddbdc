"""The trainer's commands: each is shown by --help, and what only --help needs loads nothing heavy."""

import argparse
import ast
import importlib
import os
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainer.cli
from pipeline.store.store import Store
from tests.support.paths import ROOT
from tests.tools.light_imports import heavy_modules
from trainer.__main__ import build_parser, main
from trainer.cli.command_groups import COMMAND_GROUPS

NAMES = {
    *(
        "train",
        "smoke",
        "compare",
        "presets",
        "memory",
        "export",
        "evaluate",
        "sample",
        "doctor",
        "accept",
        "bench",
        "config",
    ),
    *("verify-loader", "observe", "cache status", "cache sync", "triage", "which", "reads"),
    *(f"checkpoints {verb}" for verb in ("list", "show", "diff", "export", "import", "prune")),
}


def leaves(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command of a parser, with the words that name it."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for name, child in ((name, child) for group in groups for name, child in group.choices.items()):
        assert name in parser.format_help()
        if child.get_default("handler"):
            yield f"{path}{name}", child
        yield from leaves(child, f"{path}{name} ")


def test_every_command_is_shown_by_help() -> None:
    assert {name for name, _ in leaves(build_parser())} == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_command_says_what_it_does(name: str) -> None:
    parser = dict(leaves(build_parser()))[name]

    assert parser.description
    assert "--json" in parser.format_help()


def test_every_file_of_commands_is_a_group() -> None:
    modules = [
        importlib.import_module(f"trainer.cli.{found.name}") for found in pkgutil.iter_modules(trainer.cli.__path__)
    ]

    declared = {module.add_commands for module in modules if hasattr(module, "add_commands")}
    assert declared == {group.add_commands for group in COMMAND_GROUPS}


@pytest.mark.parametrize(("statement", "code"), [("import slow", -2), ("signal.raise_signal(2)", 130)])
def test_an_interrupt_ends_a_process_that_imports_and_is_raised_in_any_other(
    statement: str, code: int, tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text("import signal\ntry: signal.raise_signal(2)\nfinally: print('raised')\n")
    program = f"import signal, sys; from trainer.__main__ import _interrupt; signal.signal(2, _interrupt)\n{statement}"
    wrapped = f"{program.replace(statement, 'try: ' + statement)}\nexcept KeyboardInterrupt: sys.exit(130)"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    found = subprocess.run(
        [sys.executable, "-c", wrapped], env=environment, capture_output=True, text=True, check=False
    )

    assert (found.returncode, found.stdout, found.stderr) == (code, "", "")


def test_the_parser_loads_no_torch() -> None:
    assert heavy_modules("trainer.__main__", ("torch", "numpy", "pydantic", "safetensors", "pyarrow")) == []


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_command_refuses_a_store_of_another_version(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "objects").mkdir()

    assert main([*name.split(), "--store", str(tmp_path), "--json"]) == 1
    assert '"error": "FormatError"' in capsys.readouterr().out


LISTS_OR_REFUSES = {
    "presets": 0,
    "checkpoints list": 1,  # a folder that holds no store
    "triage": 0,
    "cache status": 0,
    "train --corpus nowhere --out out": 1,
    "train --corpus nowhere --snapshot 0123456 --out out": 1,
    "sample --checkpoint mine@3": 1,
    "compare mine@1 mine@2": 1,
    "checkpoints show 0123456": 1,
    "smoke --snapshot live": 1,
}
REFUSED_SNAPSHOTS = ("OF_COLLECT", "LIVE --device tpu", "LIVE --device cuda:99", "LIVE --run ../run")


def test_what_lists_or_refuses_loads_no_torch_and_takes_the_store_of_the_environment(
    tiny_store: Store, tmp_path: Path
) -> None:
    ids = {"LIVE": str(tiny_store.ref("tiny", "live")), "OF_COLLECT": str(tiny_store.ref("tiny", "collect"))}
    train = f"train --store {tiny_store.root} --out out --snapshot"
    refused = [" ".join([train, *(ids.get(word, word) for word in line.split())]) for line in REFUSED_SNAPSHOTS]
    expected = LISTS_OR_REFUSES | dict.fromkeys(refused, 1)
    code = f"""
import contextlib, runpy, sys
from trainer.__main__ import main
codes = {{line: main(line.split()) for line in {list(expected)!r}}}
sys.argv = ["kernels", "--help"]
with contextlib.suppress(SystemExit):
    runpy.run_module("kernels", run_name="__main__")
print(repr((codes, "torch" in sys.modules)))
"""
    environment = {**os.environ, "SLUICE_STORE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    *answers, last = done.stdout.splitlines()

    assert ast.literal_eval(last) == (expected, False), done.stderr
    assert any("nam56r" in line for line in answers), "answers are on stdout"
    assert f"there is none in {tmp_path}" in done.stderr, "words are on stderr"


def test_an_interrupt_ends_a_process_that_starts_again_without_a_traceback() -> None:
    program = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
os.kill(os.getpid(), signal.SIGINT)
os.execv(sys.executable, [sys.executable, "-m", "trainer", "presets"])
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
