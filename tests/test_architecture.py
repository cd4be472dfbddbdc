"""The tree agrees with the README and the documents, and everything that is declared twice is equal."""

import ast
import configparser
import re
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import settings

from tests.quick import NOT_QUICK
from tests.support.paths import ROOT
from tests.tools.accept import PHASES
from tests.tools.light_imports import heavy_modules

PACKAGES = ("pipeline", "assets", "kernels", "trainer")
MAX_LINES = 450
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 5
"""Arguments without a default."""
MADE_LATER = {
    "REUSE.toml",
    "card.md",
    "training.toml",
    "mine.toml",
    "recipe.toml",
    "commit.toml",
    "hashed.toml",
    "shares.toml",
    "decisions.toml",
    "FILE.html",
    "log/promotions.jsonl",
    "log/withdrawals.jsonl",
}
"""Files of a store, of a bundle, of sources, and of the README's examples."""


def sources() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_package_names_resolve_to_this_repository(package: str) -> None:
    module = __import__(package)

    assert Path(module.__file__ or "").parent == ROOT / package


def test_workspace_and_dg_name_the_same_location() -> None:
    dg = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["dg"]["project"]
    (entry,) = yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]

    assert entry["python_module"] == {
        "module_name": dg["code_location_target_module"],
        "location_name": dg["code_location_name"],
    }


def test_a_commit_is_checked_as_a_whole_whatever_it_changes() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]

    assert (hook["entry"], hook["always_run"], hook["pass_filenames"]) == ("make check", True, False)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_has_one_subject_and_short_functions(path: Path) -> None:
    text = path.read_text()
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = [node.name for node in functions if (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION_LINES]
    wide = [node.name for node in functions if _num_required(node) > MAX_PARAMETERS]

    assert text.count("\n") <= MAX_LINES
    assert long == []
    assert wide == [] or path.is_relative_to(ROOT / "kernels")
    assert path.stem not in {"utils", "helpers", "common", "misc"}


def test_a_file_of_tests_is_no_longer_than_one_of_the_source() -> None:
    lengths = {path: path.read_text().count("\n") for path in (ROOT / "tests").rglob("*.py")}

    assert {str(path.relative_to(ROOT)): length for path, length in lengths.items() if length > MAX_LINES} == {}


def test_neither_clock_nor_luck_decides_a_test_of_drawn_examples() -> None:
    assert settings().deadline is None
    assert settings().derandomize


def _num_required(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many arguments every call must give. Loops as machine code take columns and no records."""
    if any("compiled" in ast.unparse(each) for each in node.decorator_list):
        return 0
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args) if each.arg not in ("self", "cls")]
    return len(names) - len(node.args.defaults) + sum(each is None for each in node.args.kw_defaults)


@pytest.mark.parametrize(
    "package",
    [path for name in (*PACKAGES, "tests") for path in sorted((ROOT / name).rglob("__init__.py"))],
    ids=lambda package: package.relative_to(ROOT).as_posix(),
)
def test_a_package_file_holds_a_docstring_and_nothing_else(package: Path) -> None:
    body = ast.parse(package.read_text()).body

    assert len(body) == 1
    assert ast.get_docstring(ast.parse(package.read_text()))


@pytest.mark.parametrize("path", NOT_QUICK)
def test_what_the_quick_tests_leave_out_exists(path: str) -> None:
    file, _, name = path.partition("[")[0].partition("::")
    assert (ROOT / file).exists()
    assert not name or f"def {name}" in (ROOT / file).read_text()


def test_a_heavy_import_is_found_where_make_check_looks_for_it() -> None:
    assert heavy_modules("kernels.rms_norm", ("dagster", "torch")) == ["torch"]


def test_every_public_function_and_class_says_what_it_means() -> None:
    silent = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in sources()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]

    assert silent == []


DOCUMENTS = sorted(
    path
    for folder in (ROOT, *(ROOT / name for name in ("docs", "docs/decisions", "pipeline/build/made_corpus")))
    for path in folder.glob("*.md")
    if path.name != "CHANGELOG.md"
)
ENDS = ("py", "md", "toml", "jsonl", "html")
_NAME_OF_A_MUTATION = re.compile(r"^\| `(?!python )[^` ]+/[^`]+` \|", re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_names_is_there(document: Path) -> None:
    text = _NAME_OF_A_MUTATION.sub("|", document.read_text())
    files = [path for folder in (*PACKAGES, "tests", "docs") for path in (ROOT / folder).rglob("*.*")]
    paths = {f"/{path.relative_to(ROOT)}" for path in [*files, *ROOT.glob("*.*")]}
    code = "\n".join(path.read_text() for path in files if path.suffix == ".py")
    modules = [at.replace(".", "/") for at in re.findall(r"python -m ((?:pipeline|trainer|kernels|tests)[\w.]*)", text)]
    named = set(re.findall(rf"(?<![\w/<*-])(?:[\w-]+/)*[\w-]+\.(?:{'|'.join(ENDS)})\b", text)) - MADE_LATER

    assert [name for name in sorted(named) if not any(path.endswith(f"/{name}") for path in paths)] == []
    assert [option for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text) if f'"{option}"' not in code] == []
    assert [
        at for at in modules if not ((ROOT / at).with_suffix(".py").exists() or (ROOT / at / "__main__.py").exists())
    ] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_names_with_dots_is_in_that_module(document: Path) -> None:
    names = re.findall(rf"`((?:{'|'.join(PACKAGES)})(?:\.\w+)+)", document.read_text())

    assert [name for name in names if not _is_in_the_tree(name)] == []


def test_a_name_that_a_table_gives_beside_a_file_is_declared_there() -> None:
    changes = re.findall(r"`([\w/]+\.py)`: `(\w+)(?:\(\))?`", (ROOT / "CONTRIBUTING.md").read_text())
    versions = re.findall(r"^\| `(\w+)`[^|]*\| `([\w/]+\.py)` \|", (ROOT / "docs/architecture.md").read_text(), re.M)
    named = [*changes, *((path, name) for name, path in versions)]
    files = {
        f"/{path.relative_to(ROOT)}": path for name in (*PACKAGES, "tests") for path in (ROOT / name).rglob("*.py")
    }

    assert {"RECIPES", "TrainingPlace", "SNAPSHOT_FORMAT"} <= {name for _, name in named}
    assert [
        (path, name)
        for path, name in named
        if not any(_declares(files[at].read_text(), name) for at in files if at.endswith(f"/{path}"))
    ] == []


def _declares(text: str, name: str) -> bool:
    """Return whether a module declares a name at its top, or an argument of that name."""
    return re.search(rf"^(?:def |class )?{name}\b|\b{name}(?:: int|=)", text, re.M) is not None


def _is_in_the_tree(name: str) -> bool:
    """Return whether a dotted name is a module, or is defined in one."""
    path, inner = ROOT / name.replace(".", "/"), name.rpartition(".")[2]
    if path.with_suffix(".py").exists() or path.is_dir():
        return True
    module = path.parent.with_suffix(".py")
    return module.exists() and re.search(rf"^(?:def|class) {inner}\b|^{inner}\b", module.read_text(), re.M) is not None


def test_the_project_names_no_package_index_and_no_machine() -> None:
    place = re.compile(
        r"--(?:extra-)?index-url|https?://(?![^\s\"]*(?:127\.0\.0\.1|\{))[^\s)\"']+/simple/?(?=[\s)\"']|$)"
    )

    assert [
        str(path) for path, text in _texts().items() if path.name != "test_architecture.py" and place.search(text)
    ] == []


def test_every_target_that_a_text_names_is_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = {(name, str(path)) for path, text in _texts().items() for name in re.findall(r"`make ([a-z-]+)", text)}

    assert "demo" in {name for name, _ in named}
    assert [each for each in sorted(named) if each[0] not in targets] == []


def test_an_old_python_is_refused_in_words_and_leaves_nothing_behind(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "old").write_text('#!/bin/sh\nif [ "$1" = --version ]; then echo Python 3.9.2; else exit 1; fi\n')
    (tmp_path / "old").chmod(0o755)
    done = subprocess.run(["make", "demo", "PYTHON=./old"], cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode != 0
    assert "./old is Python 3.9.2; Sluice needs Python 3.11 or newer" in done.stderr
    assert not (tmp_path / ".venv").exists()


def _texts() -> dict[Path, str]:
    """Return the files of the project: those at its root, and those of its packages, tests and documents."""
    folders = [ROOT / name for name in (*PACKAGES, "tests", "docs")]
    files = [*ROOT.iterdir(), *(file for folder in folders for file in folder.rglob("*"))]
    suffixes = {".py", ".toml", ".txt", ".md", ".yaml"}
    return {path: path.read_text() for path in files if path.suffix in suffixes and path.is_file()}


def test_machine_code_holds_no_value_of_another_file() -> None:
    """It is cached by its own file alone: a value of another file would not be updated when that file changes."""
    texts = {path: path.read_text() for path in sources()}
    machine_code = {path for path, text in texts.items() if "from pipeline.lexing.jit import" in text}
    imports = {
        str(node.module if isinstance(node, ast.ImportFrom) else node.names[0].name)
        for path in machine_code
        for node in ast.walk(ast.parse(texts[path]))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }

    assert imports == {"numpy", "pipeline.lexing.jit"}


def test_every_file_that_a_phase_of_make_accept_runs_is_there() -> None:
    named = [argument for phase in PHASES for command in phase.commands for argument in command if "tests/" in argument]

    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    "program",
    [
        *("pipeline/__main__.py", "trainer/__main__.py", "kernels/__main__.py"),
        *("assets/demo.py", "assets/web.py", "assets/instance.py"),
    ],
)
def test_an_interrupt_ends_a_program_without_a_traceback_while_it_imports(program: str) -> None:
    statements = ast.parse((ROOT / program).read_text()).body
    guard = next(place for place, each in enumerate(statements) if isinstance(each, ast.If))
    assert "signal.signal(signal.SIGINT, signal.SIG_DFL)" in ast.unparse(statements[guard])
    assert [ast.unparse(each) for each in statements[1:guard]] == ["import signal"]
    after = ast.unparse(statements[guard + 1 :])
    assert "signal.default_int_handler" in after or "signal.SIGINT, _interrupt)" in after


EDITED_FOLDERS = ("assets", "ci", "deploy", "docs", "kernels", "pipeline", "tests", "trainer")
EDITED_SUFFIXES = (
    ".py",
    ".md",
    ".toml",
    ".yaml",
    ".yml",
    ".json",
    ".jsonl",
    ".txt",
    ".html",
    ".svg",
    ".arrow",
    ".bundle",
)


@cache
def editor_sections() -> list[tuple[list[str], dict[str, str]]]:
    """Return the globs of each section, and what it sets."""
    parser = configparser.ConfigParser(comment_prefixes=("#",), delimiters=("=",))
    parser.read_string("[of the file]\n" + (ROOT / ".editorconfig").read_text())
    return [(name.strip("{}").split(","), dict(parser[name])) for name in parser.sections()[1:]]


def edited_files() -> Iterator[Path]:
    found = [path for path in ROOT.iterdir() if path.is_file()]
    found += [path for folder in EDITED_FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in sorted(found):
        is_hidden = any(part.startswith((".", "__pycache__")) for part in path.relative_to(ROOT).parts[:-1])
        if (path.suffix in EDITED_SUFFIXES or path.name == "Makefile") and not is_hidden:
            yield path


def editor_settings(path: Path) -> dict[str, str]:
    """Return what is set for a file: of two sections that match it, the later one."""
    found: dict[str, str] = {}
    for globs, values in editor_sections():
        if any(fnmatchcase(str(path.relative_to(ROOT)) if "/" in glob else path.name, glob) for glob in globs):
            found |= values
    return {name: value for name, value in found.items() if value != "unset"}


def broken_settings(content: bytes, settings: dict[str, str]) -> list[str]:
    """Return the settings that a file breaks."""
    found = {
        "insert_final_newline": content != b"" and not content.endswith(b"\n"),
        "end_of_line": b"\r" in content,
        "trim_trailing_whitespace": re.search(rb"[ \t]$", content, re.MULTILINE) is not None,
        "charset": "charset" in settings and content.decode(errors="ignore").encode() != content,
    }
    return [name for name, is_broken in found.items() if is_broken and name in settings]


def test_every_file_is_as_the_settings_of_editors_say() -> None:
    found = {path: broken_settings(path.read_bytes(), editor_settings(path)) for path in edited_files()}

    assert len(found) > 1_000
    assert {str(path.relative_to(ROOT)): names for path, names in found.items() if names} == {}


def test_the_longest_line_is_that_of_the_checks() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lengths = {
        name: found for *_, each in editor_sections() for name, found in each.items() if name == "max_line_length"
    }

    assert lengths == {"max_line_length": str(project["tool"]["ruff"]["lint"]["pycodestyle"]["max-line-length"])}
    assert "max_line_length" not in editor_settings(ROOT / "README.md")


def test_a_file_that_breaks_a_setting_is_named() -> None:
    python = editor_settings(ROOT / "made.py")

    assert broken_settings(b"x = 1\n", python) == []
    assert broken_settings(b"x = 1 \n\ty", python) == ["insert_final_newline", "trim_trailing_whitespace"]
    assert broken_settings(b"# \xff\r\n", python) == ["end_of_line", "charset"]
    assert editor_settings(ROOT / "pipeline/build/made_corpus/heron/a.py").keys() == {
        "indent_style",
        "indent_size",
        "max_line_length",
    }
