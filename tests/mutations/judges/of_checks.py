"""Mutations of single checks: one condition after the other is taken out of the code that judges, and a canary must be missed.

The list is made by one rule over the syntax of JUDGES: each operand of `and`, `or`, `&`, `|` and `+`, each added count, each early
return, each entry of a table, each field that two tuples are compared by, and each answer of a predicate.
"""

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from tests.mutations.bench import Bench
from tests.mutations.mutation import Kind, Mutation
from tests.support.paths import ROOT

JUDGES = (
    "pipeline.stages.verify.columns",
    "pipeline.stages.verify.packed_rows",
    "pipeline.stages.verify.tokens",
    "pipeline.stages.verify.training_rows",
    "pipeline.build.oracles.audited_files",
    "pipeline.build.oracles.audited_licenses",
    "pipeline.build.oracles.audited_decisions",
    "pipeline.build.oracles.audited_leaves",
    "pipeline.build.oracles.audited_redactions",
    "pipeline.build.oracles.copies.copied_columns",
    "pipeline.build.oracles.audited_structure",
    "pipeline.build.oracles.code_marks",
    "pipeline.build.oracles.snapshots.audited_snapshot",
    "pipeline.build.oracles.drops.drop_rules",
    "pipeline.build.oracles.copies.similar_copies",
    "pipeline.build.oracles.drops.token_runs",
    "pipeline.build.oracles.drops.late_drops",
    "pipeline.build.oracles.drops.license_drops",
    "pipeline.build.oracles.snapshots.stored_order",
    "pipeline.build.oracles.audited_rows",
    "pipeline.build.audit",
    "pipeline.stages.verify.stage",
    "pipeline.stages.verify.smoke",
    "pipeline.stages.normalize.measures",
    "pipeline.stages.normalize.text_gates.restrictions",
    "pipeline.stages.normalize.text_gates.gibberish",
    "pipeline.stages.normalize.duplicates.text_inside",
)
"""Modules that judge. Their tests see a check that refuses too much: no canary does."""
_TESTED_ELSEWHERE = {"pipeline.build.audit": ["tests/pipeline/build/oracles/test_audited_rows.py"]}
"""Modules whose own tests need a build of their own, and the quick ones that are run in their place."""
SHORTCUTS: dict[str, tuple[str, ...]] = {
    "_values": (
        "if column.null_count == len(column):\n    return [None] * len(column)",
        "pa.types.is_large_string(column.type.value_type)",
    ),
    "_agree": ("chunks_N > 0",),
    "_is_painted": ("found_N is None",),
    "_runs": (
        "values_C is None",
        "starts_C is None",
        "if values_C is None or starts_C is None:\n    return None",
    ),
    "_extents": ("starts_E is not None", "ends_E is not None", "None", "AnyArray"),
    "count_boundary_mismatches": ("if not packed.num_rows:\n    return 0",),
    "count_commit_order_violations": ("file is None", "indices is None"),
    "count_fractions_that_differ": (
        "if 'build_aware_fraction' not in packed.column_names:\n    return int(packed.num_rows)",
    ),
    "_layout": ("lengths_P > 0",),
    "_directive": ("end <= last_end",),
    "_digests": ("str", "None"),
    "_base_letter": ("if letter.isascii():\n    return letter",),
    "_is_plausible": ("1",),  # no comment, literal or directive begins with a placeholder
    "_specials_agree": ("~starts_NT",),
    "_is_rebuilt": ("any(ends[:-1])",),
    # Of no row each count is 0.
    "count_structures_that_differ": ("training[name].null_count", "not training.num_rows"),
    "misread_files": ("git_id",),
    "miscopied_documents": ("part is None", "Tables", "None"),
    "_holds_item": ("found is None",),
    "misdropped_licenses": ("lost",),
    # Without any class every license is refused, and `miscaused_drops` asks for the reason again.
    "misstated_licenses": ("classes", "row['reason'] in FOR_LICENSES"),
    "_in_directive": ("always False",),
    "torn_leaves": ("place",),
    "_silent_folders": ("folder in folders", "folder not in found"),
    "is_code": ("suffix != ''",),
    "_repeats": ("bool(lines)",),
    "waived_findings": ("if not decisions.decisions:\n    return {}",),
    "find_restrictions": ("if not entries:\n    return []", "entry.unbounded.search(content)"),
    "_match_listed": ("other is not None",),
    "_rows": ("{'source', 'path', 'document_id', content_id}",),
    "_is_name": ("glob == name",),
    "find_gibberish": ("if text.isascii():\n    return []", "'\ufffd' in text"),
}
"""Function -> the conditions that nothing can miss: without them another one says the same, or the code raises."""
_COMPOSES = "pipeline.stages.verify.stage"
"""The module that composes what its judges say: a build goes through all of it, the canaries through less."""
_EXPECTED = ("canary:*", "error:*", "crash:canaries", "crash:exit-*", "gate:*", "promote", "test:*")
_MAX_SHOWN = 80


@dataclass(frozen=True)
class Check:
    """A condition of judging code, and what takes it out."""

    module: str
    place: str
    condition: str
    remove: Callable[[], None]


def mutations() -> Iterator[Mutation]:
    """Return a mutation for each condition of the judging code."""
    names: Counter[str] = Counter()
    for check in checks():
        name = f"check/{check.module.rpartition('.')[2]}.{check.place}/{' '.join(check.condition.split())[:_MAX_SHOWN]}"
        names[name] += 1
        name = f"{name} ({names[name]})" if names[name] > 1 else name
        planted = f"{check.place} without `{check.condition}`"
        yield Mutation(name, Kind.STAGE, planted, _EXPECTED, partial(_run, check))


def checks() -> Iterator[Check]:
    """Yield each condition that can be taken out and is no shortcut."""
    for path in JUDGES:
        module = import_module(path)
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.FunctionDef) and isinstance(getattr(module, node.name), FunctionType):
                for number, (condition, _) in enumerate(_removals(node)):
                    if condition not in SHORTCUTS.get(node.name, ()):
                        yield Check(path, node.name, condition, partial(_replace, module, node.name, number))
            elif isinstance(node, ast.Assign) and _is_table(node):
                constant = ast.unparse(node.targets[0])
                for key in map(str, getattr(module, constant)):
                    yield Check(path, constant, key, partial(_shorten, module, constant, key))


def tests_of(module: str) -> list[str]:
    """Return the test files of a module that judges: those of its name, or of a part of its subject, at its path below tests."""
    place, name = ROOT.joinpath("tests", *module.split(".")[:-1]), module.rpartition(".")[2]
    files = [path for path in place.glob("test_*.py") if f"{path.stem}_".startswith(f"test_{name}_")]
    return _TESTED_ELSEWHERE.get(module) or sorted(path.relative_to(ROOT).as_posix() for path in files)


def _is_table(node: ast.Assign) -> bool:
    return isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Tuple | ast.Dict)


def _run(check: Check, bench: Bench) -> None:
    check.remove()
    for each in vars(import_module(check.module)).values():
        if callable(forget := getattr(each, "cache_clear", None)):
            forget()
    if check.module == _COMPOSES:
        if (snapshot_id := bench.build()) != bench.live_id:
            bench.say("test:tests/test_golden.py", f"{snapshot_id}, not {bench.live_id}")
    else:
        bench.send_canaries()
    if not bench.red:
        bench.run_tests(*tests_of(check.module))


def _shorten(module: ModuleType, constant: str, key: str) -> None:
    """Take one entry out of a table of a module."""
    found = getattr(module, constant)
    left = {name: value for name, value in found.items() if str(name) != key} if isinstance(found, dict) else None
    setattr(module, constant, tuple(each for each in found if str(each) != key) if left is None else left)


def _replace(module: ModuleType, name: str, number: int) -> None:
    """Give a function, wherever it is referred to, the code that is left of it without one condition."""
    tree = ast.parse(inspect.getsource(module))
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    list(_removals(function))[number][1]()
    code = compile(ast.fix_missing_locations(ast.Module([function], [])), str(module.__file__), "exec")
    made: dict[str, Any] = {}
    exec(code, vars(module), made)  # its own source, of which something is missing
    getattr(module, name).__code__ = made[name].__code__


def _removals(function: ast.FunctionDef) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the source of each condition, and what takes it out of the tree."""
    if isinstance(function.returns, ast.Name) and function.returns.id == "bool":
        for answer in (True, False):
            yield f"always {answer}", partial(setattr, function, "body", [ast.Return(ast.Constant(answer))])
    for node in ast.walk(function):
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns"):
                continue
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST):
                    for gone, left in _without(child):
                        yield ast.unparse(gone), partial(_put, node, field, index, left)


def _put(node: ast.AST, field: str, index: int | None, child: ast.AST) -> None:
    if index is None:
        setattr(node, field, child)
    else:
        getattr(node, field)[index] = child


def _without(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield what can be taken out of a node, and what is left of it."""
    match node:
        case ast.BoolOp(op, values) if not isinstance(values[-1], ast.List):  # an `or []` gives a null a value
            for value in values:
                yield value, ast.BoolOp(op, [each for each in values if each is not value] * 2)
        case ast.BinOp(left, ast.BitAnd() | ast.BitOr() | ast.Add(), right):
            yield left, right
            yield right, left
        case ast.AugAssign(_, ast.Add() | ast.BitOr(), _) | ast.If(_, [ast.Return()], []):
            yield node, ast.Pass()
        case ast.Dict([_, _, *_]):
            for key in node.keys:
                pairs = [pair for pair in zip(node.keys, node.values, strict=True) if pair[0] is not key]
                yield key or node, ast.Dict([name for name, _ in pairs], [value for _, value in pairs])
        case ast.Compare(ast.Name() as found, [ast.NotEq() | ast.Eq()], [ast.Tuple(fields)]):
            for index, field in enumerate(fields):
                same = ast.Subscript(found, ast.Constant(index), ast.Load())
                changed = [same if each is field else each for each in fields]
                yield field, ast.Compare(found, node.ops, [ast.Tuple(changed, ast.Load())])
