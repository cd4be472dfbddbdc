"""The rooms: folders whose parts import each other downwards alone, as few as a reader can hold, each with a charter.

A room is a direct child of a folder, a file or a folder. An arrow is one room importing another, anywhere in a file, under
TYPE_CHECKING too, or naming it as `module:name` for what is loaded later. A room's floor is one above the highest room that it
imports.

python -m tests.test_rooms      prints the table
"""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pipeline.stages.stages import STAGES
from tests.support.paths import ROOT

PACKAGES = ("assets", "kernels", "pipeline", "trainer")
MAX_FLOORS_AND_ARROWS = {"pipeline": (9, 60), "trainer": (7, 50)}
MAX_CHILDREN = 16
MAX_FILES = 15
STAGES_FOLDER = "pipeline.stages"
_OF_DETECTORS = {f"{STAGES_FOLDER}.normalize.scrub.{folder}" for folder in ("addresses", "credentials", "secrets")}
WITHOUT_LAYERS = {STAGES_FOLDER, *_OF_DETECTORS}
"""Folders whose children are held apart by a contract with a wildcard: a new stage or detector is no line of pyproject.toml."""
NAMES_OF_EVERY_STAGE = {"__init__", "__main__", "stage", "params", "op"}
TESTED_ELSEWHERE = {
    "assets/demo.py": "`make demo` runs it",
    "kernels/framework/operands.py": "the strides and sums of every operation: test_parity.py",
    "pipeline/build/canaries/collect_offenses.py": "each offense turns its gate red: test_offenses.py",
    "pipeline/build/canaries/conservation_offenses.py": "each offense turns its gate red: test_offenses.py",
    "pipeline/build/canaries/enrich_offenses.py": "each offense turns its gate red: test_offenses.py",
    "pipeline/build/canaries/normalize_offenses.py": "each offense turns its gate red: test_offenses.py",
    "pipeline/build/canaries/tokenize_offenses.py": "each offense turns its gate red: test_offenses.py",
    "pipeline/build/canaries/verify_offenses.py": "each offense turns its gate red: test_offenses.py",
    "pipeline/cli/declaration.py": "the declarations that a command line is made of: test_main.py",
    "pipeline/contracts/gates_seen.py": "a record that a build writes: test_seen_red.py",
    "pipeline/contracts/part.py": "a protocol, whose contexts are a build and its memory: test_run_stage.py",
    "pipeline/lexing/language_lexers.py": "the lexer of each language: test_languages_registered.py",
    "pipeline/sandbox/sandbox_child.py": "a program of the sandbox: test_sandbox.py",
    "pipeline/stages/collect/kinds/archive.py": "a kind among the others: test_source_kind.py",
    "pipeline/stages/collect/params.py": "limits, each reached by a bad input: test_bad_archives.py",
    "pipeline/stages/enrich/compiler/tools.py": "the tools that an index needs: test_compiler_index.py",
    "pipeline/stages/enrich/compiler/unit_worker.py": "a program of the compiler index: test_compiler_index.py",
    "pipeline/stages/enrich/params.py": "limits of units: test_units.py",
    "pipeline/stages/normalize/license/extents.py": "the lengths of license texts: test_texts.py",
    "pipeline/stages/normalize/license/prose/explained.py": "phrases that a decision leaves out: test_decide.py",
    "pipeline/stages/normalize/params.py": "limits of filters and bands: test_filters.py",
    "pipeline/stages/normalize/scrub/credentials/placed_passwords.py": "the four finders by place: test_detectors.py",
    "trainer/inference/modeling_sluice.py": "part of an export: test_transformers_export.py",
    "trainer/proof/repeat_training.py": "a program of the acceptance gates: test_acceptance.py",
    "trainer/train/result.py": "the end of a training session: test_loop.py",
}
"""Files with a function and without a test file of their name, and the test that judges them."""
MAX_TESTED_ELSEWHERE = 25
"""The list can only shrink: a new file has a test file of its own, or the tests of another one are renamed."""
NAMES_OF_EVERY_MODULE = {
    "SPEC": "the description of an operation, in each file of `kernels`",
    "KIND": "the kind of a source, in each file of `pipeline.stages.collect.kinds`",
    "add_commands": "a group of commands, in each file of `trainer.cli`",
    "main": "a program",
    "run": "a stage, in each `stage.py`",
}
"""Names that mean the same in each of several modules."""

_VERBS = """
    Add Adopt Allocate Append Apply Assign Attend Audit Build Check Clean Combine Commit Compare Compare-and-swap Compile
    Compose Compute Concatenate Continue Convert Convolve Copy Count Create Cut Damage Decide Declare Decompress
    Derive Describe Digest Download Draw Drop End Erase Escape Fetch Fill Find Finish Fit Flatten Forget Format Freeze Gather
    Generate Give Hash Hold Import Index Iterate Join Judge Keep Kill Launch Lay Leave List Load Lock Log Make Map
    Mark Measure Mount Move Name Open Order Pack Parse Plot Print Promote Prove Quarantine Queue Raise Re-execute
    Read Record Refuse Register Release Remove Rename Render Replace Report Require Resolve Restore Resume Return
    Rotate Round Run Sample Scale Score Send Serialize Set Shard Show Sort Start Store Sum Sync Tag Take Time Trace
    Train Try Turn Update Verify Wait Walk Write Yield
"""
VERBS = frozenset(_VERBS.split())
"""Verbs that docstrings of functions begin with. One that is missing is added here; a noun is not."""

ON_ITS_OWN = "modeling_sluice.py"
"""A file that is copied into exports and imports nothing of ours: its blocks are named like those of the model."""


class Plan(NamedTuple):
    """The rooms of a folder: what each imports of its siblings, and the floor that it is on, counted from 1."""

    imports: Mapping[str, frozenset[str]]
    floors: Mapping[str, int]

    @property
    def num_arrows(self) -> int:
        return sum(map(len, self.imports.values()))


@cache
def _modules() -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            found[_dotted(path)] = path
    return found


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def _imports_of(module: str) -> frozenset[str]:
    """Modules of the project that a module imports, at any depth of its code."""
    modules, found = _modules(), set()
    for node in ast.walk(ast.parse(modules[module].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & modules.keys()) or {node.module}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[\w.]+:\w+", node.value):
            found.add(node.value.partition(":")[0])
    return frozenset(found & modules.keys()) - {module}


def plan(folder: str) -> Plan:
    """Measure the rooms of a folder, given as a dotted name. Raises CycleError where rooms import each other in a circle."""
    rooms: dict[str, set[str]] = {}
    for module in _modules():
        room = _room(folder, module)
        if room is not None:
            found = rooms.setdefault(room, set())
            found |= {other for each in _imports_of(module) if (other := _room(folder, each)) not in (None, room)}
    floors: dict[str, int] = {}
    for room in TopologicalSorter(rooms).static_order():
        floors[room] = 1 + max((floors[other] for other in rooms[room]), default=0)
    return Plan({room: frozenset(others) for room, others in rooms.items()}, floors)


def _room(folder: str, module: str) -> str | None:
    return module.removeprefix(f"{folder}.").split(".")[0] if module.startswith(f"{folder}.") else None


def _folders() -> list[str]:
    return [name for name, path in _modules().items() if path.name == "__init__.py"]


def _table() -> Iterator[str]:
    yield f"{'folder':32} rooms floors arrows"
    for folder in _folders():
        rooms = plan(folder)
        yield f"{folder:32} {len(rooms.floors):5} {max(rooms.floors.values(), default=0):6} {rooms.num_arrows:6}"
        for floor in range(max(rooms.floors.values(), default=0), 0, -1):
            yield f"    {floor:2} {', '.join(sorted(room for room, on in rooms.floors.items() if on == floor))}"


@pytest.mark.parametrize("folder", _folders())
def test_no_folder_has_a_circle(folder: str) -> None:
    try:
        plan(folder)
    except CycleError as error:
        pytest.fail(f"{folder}: {' -> '.join(error.args[1])}")


def test_files_of_tests_do_not_import_each_other_in_a_circle() -> None:
    """Read by an expression, which takes a tenth of the time of a parser."""
    texts = {_dotted(path): path.read_text() for path in (ROOT / "tests").rglob("*.py")}
    imports: dict[str, set[str]] = {}
    for name, text in texts.items():
        found = re.findall(r"^ *from (tests[\w.]*) import (\([^)]*\)|.*)$", text, re.M)
        named = {f"{module}.{each}" for module, names in found for each in re.findall(r"\w+", names)}
        imports[name] = (named | {module for module, _ in found}) & texts.keys()
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("folder", sorted({*_folders()} - WITHOUT_LAYERS))
def test_layers_name_every_file_of_a_folder(folder: str) -> None:
    """`lint-imports` refuses a file that an exhaustive contract does not name."""
    found = [each for each in _contracts() if each["type"] == "layers" and folder in each["containers"]]

    if len(plan(folder).floors) > 1:
        assert found, f"{folder} has no layers: declare `Floors of {folder}` in pyproject.toml"
    assert all(each.get("exhaustive") for each in found), f"`Floors of {folder}` in pyproject.toml: exhaustive = true"


@pytest.mark.parametrize("folder", sorted(WITHOUT_LAYERS))
def test_files_of_a_folder_without_layers_are_held_apart(folder: str) -> None:
    assert [f"{folder}.*"] in [each["modules"] for each in _contracts() if each["type"] == "independence"]


def _contracts() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    return found


@pytest.mark.parametrize("folder", MAX_FLOORS_AND_ARROWS)
def test_a_package_is_read_in_few_floors_and_arrows(folder: str) -> None:
    rooms, (max_floors, max_arrows) = plan(folder), MAX_FLOORS_AND_ARROWS[folder]
    print(*_table(), sep="\n")

    assert max(rooms.floors.values()) <= max_floors
    assert rooms.num_arrows <= max_arrows


@pytest.mark.parametrize("folder", _folders())
def test_a_folder_holds_few_children(folder: str) -> None:
    files = [path for path in (ROOT / folder.replace(".", "/")).glob("*.py") if path.name != "__init__.py"]

    assert len(plan(folder).floors) <= MAX_CHILDREN
    assert len(files) <= MAX_FILES


def test_a_folder_of_tests_holds_few_files() -> None:
    folders = Counter(path.parent for path in (ROOT / "tests").rglob("*.py") if path.name != "__init__.py")

    assert {str(folder): number for folder, number in folders.items() if number > MAX_FILES} == {}


def test_no_folder_of_tests_is_left_out(pytestconfig: pytest.Config) -> None:
    """As pytest leaves out each folder called `build`, unless it is told otherwise."""
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    left_out = [each for each in folders for name in pytestconfig.getini("norecursedirs") if fnmatch(each.name, name)]

    assert left_out == []


CHARTERED = sorted({path.parent for package in (*PACKAGES, "tests") for path in (ROOT / package).rglob("*.py")})
"""Folders with code. Those of tests have charters as those of the source."""


@pytest.mark.parametrize("folder", CHARTERED, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_a_charter_says_what_belongs_here_and_what_is_elsewhere(folder: Path) -> None:
    charter = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    first, _, rest = charter.partition("\n\n")
    named = re.findall(r"`([^`]+)`", charter)

    assert first.endswith(".")
    assert "`" in rest, "the second sentence names where the rest is"
    assert [name for name in named if not _is_there(name)] == []


def _is_there(name: str) -> bool:
    """Return whether a module, a folder or a file that a charter names exists. Commands and plain words are none."""
    if re.fullmatch(rf"(?:{'|'.join(PACKAGES)}|tests)(?:\.\w+)+", name):
        place = ROOT.joinpath(*name.split("."))
        return place.is_dir() or place.with_suffix(".py").exists()
    is_path = re.fullmatch(r"(?:\w+/)*\w+(?:/|\.py|\.toml)", name)
    return not is_path or any((folder / name).exists() for folder in (ROOT, *CHARTERED))


def test_the_tree_in_the_readme_is_the_tree() -> None:
    shown = list(_folders_in_the_readme())
    folders = {
        path.parent.relative_to(ROOT).as_posix() for each in PACKAGES for path in (ROOT / each).rglob("__init__.py")
    }

    declared = {
        f"{STAGES_FOLDER.replace('.', '/')}/{stage}" for stage in STAGES.names
    }  # "a folder each", of these five or more

    assert [name for name, place in shown if place is None] == []
    assert sorted(folders - declared - {place for _, place in shown}) == []


def _folders_in_the_readme() -> Iterator[tuple[str, str | None]]:
    """Yield each folder that the tree names, and its place: a child of the line above with less indent, or below its own line."""
    tree = (ROOT / "README.md").read_text().partition("## The tree")[2].partition("## ")[0]
    above = {0: [ROOT]}
    for indent, names, text in re.findall(r"^    ( *)((?:[a-z0-9_]+/(?:, )?)+) +(.*)", tree, re.M):
        level = len(indent) // 2
        children = [(name, _found(above[level], name, "*")) for name in re.findall(r"[a-z0-9_]+", names)]
        above[level + 1] = [path for _, path in children if path]
        inner = [(name, _found(above[level + 1], name, "**/*")) for name in re.findall(r"\b([a-z0-9_]+)/", text)]
        for name, path in (*children, *inner):
            yield name, path.relative_to(ROOT).as_posix() if path else None


def _found(parents: Iterable[Path], name: str, below: str) -> Path | None:
    return next(
        (path for each in parents for path in sorted(each.glob(below)) if path.is_dir() and path.name == name), None
    )


def test_tests_mirror_the_source() -> None:
    homes = {
        (path.parent if path.name != "__init__.py" else path.parent.parent, path.stem.strip("_"))
        for path in _modules().values()
    }
    folders = [path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_dir()]
    homes |= {(home, path.name) for path in folders for home in (path.parent, path)}
    lost = []
    for package in PACKAGES:
        for path in sorted((ROOT / "tests" / package).rglob("test_*.py")):
            source = ROOT / path.parent.relative_to(ROOT / "tests")
            subject = path.stem.removeprefix("test_")
            if not any(home == source and (subject + "_").startswith(name + "_") for home, name in homes):
                lost.append(str(path.relative_to(ROOT)))

    assert lost == []


def test_a_file_with_a_function_has_a_test_file_of_its_name() -> None:
    """Operations are tested by the parity of their specifications, machine code by the functions that call it."""
    lost = []
    for path in _modules().values():
        text, place = path.read_text(), path.relative_to(ROOT)
        has_function = any(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(text)))
        is_operation = place.parts[0] == "kernels" and place.parts[1] not in ("framework", "measure")
        is_machine_code = "pipeline.lexing.jit" in text or path.name == "jit.py"
        if has_function and not (is_operation or is_machine_code or path.name in ("__init__.py", "__main__.py")):
            test = ROOT / "tests" / place.parent / f"test_{path.stem}.py"
            lost += [] if test.exists() else [str(place)]

    assert sorted(lost) == sorted(TESTED_ELSEWHERE)
    assert len(TESTED_ELSEWHERE) <= MAX_TESTED_ELSEWHERE


@pytest.mark.parametrize("reason", sorted(set(TESTED_ELSEWHERE.values())))
def test_the_test_of_a_file_without_its_own_is_there(reason: str) -> None:
    named = re.findall(r"test_\w+\.py", reason)
    assert "`make " in reason or (named and [*(ROOT / "tests").rglob(named[0])])


def test_no_file_name_is_used_twice() -> None:
    """Tests have the name of their subject, and fixtures that of pytest; whatever else is below `tests` has its own."""
    programs = {str(path.relative_to(ROOT)): path for path in _programs_of_tests()}
    found = _used_twice((path.stem, name) for name, path in (_modules() | programs).items())

    assert found.keys() <= NAMES_OF_EVERY_STAGE, found


def test_a_public_name_is_declared_in_one_module() -> None:
    """Likewise the name of a class that is private."""
    found = _used_twice(
        (name.lstrip("_"), module)
        for module, path in _modules().items()
        if path.name != ON_ITS_OWN
        for node in ast.parse(path.read_text()).body
        for name in _declared_by(node)
        if isinstance(node, ast.ClassDef) or not name.startswith("_")
    )

    assert found.keys() <= NAMES_OF_EVERY_MODULE.keys(), found


def _programs_of_tests() -> list[Path]:
    return [path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith(("test_", "conftest."))]


def _used_twice(uses: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names of more than one module, with those modules."""
    modules: dict[str, set[str]] = {}
    for name, module in uses:
        modules.setdefault(name, set()).add(module)
    return {name: sorted(found) for name, found in sorted(modules.items()) if len(found) > 1}


def _declared_by(statement: ast.stmt) -> list[str]:
    """Return the names that a statement of a module declares: a class, a function, a constant or an alias."""
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [
                node.id
                for target in targets
                for node in ast.walk(target)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            ]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


@pytest.mark.parametrize("package", [*PACKAGES, "tests"])
def test_docstrings_begin_with_a_noun_or_an_imperative_verb(package: str) -> None:
    """Docstrings of modules, classes and functions, and those below an attribute or a constant."""
    questions = ("What", "Which", "Where", "How", "Whether", "Who", "Why")
    trees = {path: ast.parse(path.read_text()) for path in sorted((ROOT / package).rglob("*.py"))}
    docstrings = [
        (str(path.relative_to(ROOT)), node.value.value.strip())
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]

    assert [str(path) for path, tree in trees.items() if not ast.get_docstring(tree)] == []
    assert [(path, text.split("\n")[0]) for path, text in docstrings if text.startswith(questions)] == []


@pytest.mark.parametrize("module", sorted(_modules()))
def test_docstrings_of_functions_begin_with_a_verb(module: str) -> None:
    functions = [
        node
        for node in ast.walk(ast.parse(_modules()[module].read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not any(ast.unparse(each).endswith("property") for each in node.decorator_list)
    ]
    first_words = {node.name: re.match(r"[\w-]*", ast.get_docstring(node) or "Return") for node in functions}

    assert {name: word[0] for name, word in first_words.items() if word and word[0] not in VERBS} == {}


if __name__ == "__main__":
    print(*_table(), sep="\n")
    sys.exit()
