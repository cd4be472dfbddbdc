"""Definition scrubber on the way of a whole command. `test_local_paths.py` holds it and the gate against one corpus of paths."""

import ast
import json
from pathlib import Path

from pipeline.build.recipes import ROOT
from pipeline.stages.enrich.compiler.compile_commands import context_of, read_database
from pipeline.stages.enrich.compiler.definition_scrubber import ELSEWHERE, scrub_definition
from pipeline.stages.enrich.compiler.local_paths import count_local
from pipeline.stages.enrich.compiler.source_tree import SourceTree

FOLDER = Path("pipeline/stages/enrich/compiler")
PLACES = (("/ci/work/p/build", "build"), ("/ci/work/p", "source"))
SECRET = "zanzibar"


def scrub(value: str) -> str | None:
    return scrub_definition(value, PLACES, ())


def test_a_path_in_quotes_may_hold_spaces() -> None:
    for path in (
        rf"C:\Users\Ann {SECRET}\x",
        rf"C:\Program Files (x86)\{SECRET}\x",
        f"/srv/my {SECRET}/include",
        f"~/my {SECRET}/x",
    ):
        assert SECRET not in (scrub(f'X="{path}"') or "")


def test_paths_of_the_tree_are_relative_behind_any_option() -> None:
    value = 'X="-I/ci/work/p/a -isystem/ci/work/p/b --sysroot=/ci/work/p -Wl,-rpath,/ci/work/p/build/l:/ci/work/p/c" @/ci/work/p'

    assert scrub(value) == 'X="-Isource/a -isystemsource/b --sysroot=source -Wl,-rpath,build/l:source/c" @source'
    assert scrub("X=/ci/work/p/../q") == "X=source/elsewhere"
    assert scrub("X=/ci/work/p2/q") == f"X={ELSEWHERE}"


def test_a_definition_within_a_command_reaches_the_context_without_its_path() -> None:
    """The whole way of a command: quoting, a response file, the scrubber, the context, the gate."""
    rest = {"source/flags.rsp": f'-DR=\\"-isystem/opt/{SECRET}\\"'.encode()}
    tree = SourceTree(frozenset({"source/a.cc", "source/flags.rsp"}), PLACES, rest)
    entry = {
        "directory": "/ci/work/p",
        "file": "a.cc",
        "command": rf'c++ -DFLAGS="-I/opt/{SECRET}/include" "-DG=\"-L/opt/{SECRET} -DDIV(a,b)=((a)/(b))\"" @flags.rsp a.cc',
    }
    (command,) = read_database(json.dumps([entry]).encode(), tree).commands.values()

    assert json.loads(context_of(command))["defines"] == [
        f"FLAGS=-I{ELSEWHERE}", f'G="-L{ELSEWHERE} -DDIV(a,b)=((a)/(b))"', f'R="-isystem{ELSEWHERE}"'
    ]  # fmt: skip
    assert count_local([context_of(command)], []) == 0


def test_scrubber_and_gate_share_no_code() -> None:
    modules = {}
    for name in ("definition_scrubber", "local_paths"):
        tree = ast.parse((ROOT / FOLDER / f"{name}.py").read_text())
        modules[name] = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert not [module for found in modules.values() for module in found if module and module.startswith("pipeline")]
    for user in ("source_tree", "compile_commands"):
        assert "local_paths" not in (ROOT / FOLDER / f"{user}.py").read_text()
