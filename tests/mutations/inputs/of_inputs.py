"""Mutations of pinned trees, and of parameters by rule over the Params of the stages."""

import shutil
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from pipeline.build.recipes import TINY
from pipeline.contracts.gates import GATES
from pipeline.stages.stages import STAGES
from tests.faults.injected_faults import flip
from tests.mutations.bench import Bench
from tests.mutations.mutation import Kind, Mutation


def mutations() -> Iterator[Mutation]:
    """Return the mutations of pinned trees and of parameters."""
    for form in TREES:
        planted = f"the tree of lantern with {form}, under the old digest"
        yield Mutation(f"tree/{form}", Kind.INPUTS, planted, ("gate:every_pin_verified",), partial(_tree, form))
    for stage, path in parameters():
        name = ".".join((stage, *path))
        planted = f"another {name}, with every earlier result in the store"
        yield Mutation(f"parameter/{name}", Kind.PARAMETERS, planted, ("anew",), partial(_parameter, stage, path))


# Pinned trees.


def _add(root: Path) -> None:
    (root / "src" / "added.c").write_text("int added;\n")


def _link(root: Path) -> None:
    (root / "src" / "linked.c").symlink_to("../LICENSE")


TREES: dict[str, Callable[[Path], None]] = {
    "a byte changed": lambda root: flip(sorted(root.rglob("*.c"))[0]),
    "a file added": _add,
    "a file removed": lambda root: sorted(root.rglob("*.c"))[0].unlink(),
    "a file renamed": lambda root: sorted(root.rglob("*.c"))[0].rename(root / "src" / "renamed.c") and None,
    "a link added": _link,
}


def _tree(form: str, bench: Bench) -> None:
    bench.since = "collect"
    root = bench.folder / "lantern"
    pin = next(pin for pin in bench.pins if pin.name == "lantern")
    shutil.copytree(pin.path, root)  # type: ignore[attr-defined]  # a LocalPin
    TREES[form](root)
    moved = pin.model_copy(update={"path": root})
    bench.pins = tuple(moved if each.name == "lantern" else each for each in bench.pins)
    bench.build()


# Parameters: work that depends on one must be done anew when it changes.


def parameters() -> list[tuple[str, tuple[str, ...]]]:
    """Return the fields of the Params of every stage that parts depend on, without the limits of gates."""
    limits = {gate.limit.value for gate in GATES} | {"drop_bands", "items_folder"}
    found = []
    for stage in STAGES.names:
        if stage != "verify":
            found += [(stage, path) for path in _leaves(TINY.params.of_stage(stage)) if not limits & set(path)]
    return found


def _leaves(params: BaseModel, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name in type(params).model_fields:
        value = getattr(params, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name)


def _parameter(stage: str, path: tuple[str, ...], bench: Bench) -> None:
    bench.since = ""
    changed = with_other(bench.params.of_stage(stage), path)
    bench.params = bench.params.model_copy(update={stage: changed})
    bench.build(until_live=False)
    for name, is_unchanged in bench.made.items():
        if not is_unchanged:
            bench.say("anew", name)


def with_other(params: Any, path: tuple[str, ...]) -> Any:
    """Return Params with another value in one field."""
    name, *rest = path
    value = getattr(params, name)
    other = with_other(value, tuple(rest)) if rest else _other(value)
    return params.model_copy(update={name: other})


def _other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case Enum():
            return next(each for each in type(value) if each is not value)
        case int():
            return value - 1 if value > 1 else value + 1
        case float():
            return value * 0.9 if value else 0.1
        case str():
            return "cpp-32768" if value == "tiny-1024" else f"{value}x"
        case tuple() | list():
            return type(value)(value[:-1]) if value else type(value)(["x"])
        case None:
            return 1
    raise TypeError(f"no other value for {value!r}")
