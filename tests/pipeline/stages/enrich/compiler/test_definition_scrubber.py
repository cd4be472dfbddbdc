"""Definition scrubber on the way of a whole command. `test_local_paths.py` holds it and the gate against one corpus of paths."""

import ast
import html
import inspect
import json
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.build.recipes import ROOT
from pipeline.stages.enrich.compiler import path_options
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


ENCODERS: dict[str, Callable[[str], str]] = {
    "plain": lambda sign: sign,
    "hexadecimal": lambda sign: f"\\x{ord(sign):02x}",
    "octal": lambda sign: f"\\{ord(sign):03o}",
    "unicode": lambda sign: f"\\u{ord(sign):04X}",
    "long": lambda sign: f"\\U{ord(sign):08x}",
    "braces": lambda sign: f"\\x{{{ord(sign):x}}}",
    "entity": lambda sign: f"&#{ord(sign)};",
    "hexadecimal entity": lambda sign: f"&#x{ord(sign):x};",
    "url twice": lambda sign: f"%25{ord(sign):02X}",
    "url four times": lambda sign: f"%252525{ord(sign):02x}",
    "overlong": lambda sign: f"%{0xC0 | ord(sign) >> 6:02x}%{0x80 | ord(sign) & 0x3F:02x}",
    "longest": lambda sign: f"%F0%80%{0x80 | ord(sign) >> 6:02X}%{0x80 | ord(sign) & 0x3F:02X}",
    "javascript": lambda sign: f"%u{ord(sign):04x}",
}
LAYERS: tuple[Callable[[str], str], ...] = (str, lambda text: json.dumps(text)[1:-1], html.escape)
INTRODUCED = st.one_of(
    st.sampled_from(
        ["", '"', "'", "=", ",", ";", ":", " ", "(", "[", "{", "|", "@", "\\n", "\\r\\n", "a\\t", "\\0", "x: "]
    ),
    st.from_regex(r"--[a-z][a-z-]{0,12}=?", fullmatch=True),
    st.from_regex(r"-[a-z]{2,10}", fullmatch=True).filter(lambda word: not word.startswith(tuple(JOINED))),
    st.from_regex(r"-[A-Za-z]", fullmatch=True),
)
JOINED = ["-i", "-f", "-st", "-cx", "-sy", "-sp", "-wr", "-co", "-rp", "-re", "-wo", "-gc", "-au", "-du", "-dy", "-sc"]
"""Beginnings of options whose value may have begun within the word, as in `-includename/x`."""


@settings(max_examples=600)
@given(INTRODUCED, st.lists(st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True), max_size=3), st.data())
def test_a_path_is_removed_however_it_is_introduced_and_encoded(
    before: str, names: list[str], data: st.DataObject
) -> None:
    encode = ENCODERS[data.draw(st.sampled_from(sorted(ENCODERS)))]
    layer = data.draw(st.sampled_from(LAYERS))
    path = "".join(encode("/") + name for name in [*names, SECRET])
    value = layer(f'X="{before}{path}"')
    scrubbed = scrub(value)

    assert scrubbed is None or SECRET not in scrubbed, (value, scrubbed)


@settings(max_examples=400)
@given(
    st.sampled_from(["%s", "%d", "%-5.3s", "%lu", "%*d", "%zu", "%s%s", "\\b", "\\w", "x%i"]),
    st.sampled_from(["home", "Users", "opt", "usr", "tmp", "etc", "var"]),
)
def test_a_folder_at_the_root_after_a_printed_prefix_is_removed(before: str, root: str) -> None:
    assert SECRET not in (scrub(f'X="{before}/{root}/{SECRET}"') or "")
    assert scrub(f'X="{before}/lib/x"') == f'X="{before}/lib/x"'


KEPT = st.sampled_from(
    [
        *(
            "(a)/b",
            "/*c*/1",
            "$ORIGIN/../lib",
            "https://host/a/b?c=1",
            "a/b",
            "1/2",
            "1/2/2020",
            "12/31/99 10:20",
            "N/A",
        ),
        *(
            "[a-z]+/[0-9]*",
            "\\d+/\\w+",
            "^[^/]+/.*$",
            "(?:a|b)/c",
            "\\s*/x",
            "[^/]*/y",
            "{2,3}/z",
            "s/a/b/g",
            "%d/%m/%Y",
        ),
        *(
            "%s/%s",
            "text/html; q=0.5",
            "-Iinclude/x",
            "-Lbuild/lib",
            "a\\nb",
            "a%2Fb",
            "&lt;b&gt;",
            "&#47;",
            "\\057",
            "x\\x2fy",
        ),
        *(
            "-O2 -g",
            "a-b/c",
            "x86-64/linux",
            "%5.2f%%",
            "50%",
            "a &amp; b",
            "\\x41\\x42",
            "@X@/lib",
            "u8/u16",
            "\\u00e9/x",
        ),
    ]
)


@settings(max_examples=400)
@given(st.lists(KEPT, min_size=1, max_size=4).map(" ".join))
def test_what_is_no_path_is_kept_beside_anything(value: str) -> None:
    assert scrub(f'X="{value}"') == f'X="{value}"'


def test_paths_of_the_tree_are_relative_after_any_option() -> None:
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

    shared = {module for found in modules.values() for module in found if module and module.startswith("pipeline")}
    assert shared == {path_options.__name__}
    assert not [each for each in vars(path_options).values() if inspect.isroutine(each) or inspect.isclass(each)]
    for user in ("source_tree", "compile_commands"):
        assert "local_paths" not in (ROOT / FOLDER / f"{user}.py").read_text()
