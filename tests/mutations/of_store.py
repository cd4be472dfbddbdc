"""Mutations of stored bytes, by one rule over STAGES and the other kinds of files of a store.

damage:FILE/FORM      a file flipped, cut, exchanged with another of its kind, or removed       fsck sees it
linked:FILE           a file of that kind, or the folder of an object, a link to it elsewhere    fsck and promotion refuse
column/TABLE.FIELD    one value of a row changed, the digests made to fit                       promotion refuses
made/TABLE.FIELD      the same, before the gates judged                                         a gate sees it
"""

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.core import records
from pipeline.core.table_names import FILES, HISTORY, PACKED, TOKENS, TRAINING_ROWS, TREE
from pipeline.stages.stages import STAGES
from tests.faults.injected_faults import flip
from tests.mutations import plant
from tests.mutations.bench import Bench
from tests.mutations.mutation import Kind, Mutation
from tests.mutations.plant import NotPlantedError
from tests.mutations.stored import forge_table, truncate

_NOT_MADE = (TREE, HISTORY)
"""Tables of sources with a build block or a history, which the made corpus does not have."""
_OTHER_FILES = (
    "refs/tiny/live",
    "refs/tiny/candidate",
    "refs/tiny/verify",
    "keys/*",
    "verdicts/*.json",
    "verified/*",
    "log/promotions.jsonl",
    "log/promotions.head",
    "log/withdrawals.jsonl",
    "log/withdrawals.head",
    "blobs/*",
    "names/git/*",
    "ends",
    "format",
)
_SNAPSHOT_FILES = ("snapshot.json", "tokenizer.json", "vocabulary.toml")
_FOLDERS = ("objects", "objects/tokenize", "objects/tokenize/part", "objects/tokenize/part/*", "refs/tiny", "log")
_COLUMNS = {
    FILES: ("source", records.SourceFile),
    TOKENS: ("source", records.TokenizedDocument),
    PACKED["train"]: ("source", records.PackedRow),
    TRAINING_ROWS["train"]: ("source", records.TrainingRow),
}
"""Tables of which each column says again what others say: that is what an oracle can compare."""


_SPLITS = {"train": "held_out", "held_out": "train"}


def _remove(path: Path) -> None:
    path.unlink()


def _exchange(path: Path) -> None:
    """Exchange the contents of a file and of the next of its kind, or of its first and second half."""
    content = path.read_bytes()
    others = (other for other in sorted(path.parent.parent.glob(f"*/{path.name}")) if other.read_bytes() != content)
    other = next(others, None) or next((o for o in sorted(path.parent.iterdir()) if o.read_bytes() != content), None)
    if other is None:
        raise NotPlantedError(f"no other file like {path.name}")
    path.write_bytes(other.read_bytes())
    other.write_bytes(content)


FORMS: dict[str, Callable[[Path], None]] = {
    "flipped": flip,
    "cut": truncate,
    "exchanged": _exchange,
    "removed": _remove,
}
_HARMLESS = {"keys/*/removed", "format/removed", "names/git/*/removed", "blobs/*/removed"} | {
    f"{name}/exchanged"
    for name in (
        "ends",
        "format",
        "verified/*",
        "blobs/*",
        "names/git/*",
        "log/promotions.jsonl",
        "log/withdrawals.jsonl",
    )
}
"""Changes that are no fault, because the file is only made again, or because there is only one of it."""


def mutations() -> Iterator[Mutation]:
    """Return the damages of every kind of file, and the contradictions in every column."""
    for number, name in enumerate(object_files()):
        form = list(FORMS)[number % len(FORMS)]
        yield _damage(name, form)
    for name in _OTHER_FILES:
        yield from (_damage(name, form) for form in FORMS if f"{name}/{form}" not in _HARMLESS)
    for name in (*object_files(), *_FOLDERS, *_OTHER_FILES):
        planted = f"a path {name} a link to what was moved out of the store"
        yield Mutation(f"linked:{name}", Kind.STORED, planted, ("fsck",), partial(_linked, name))
    for table, (function, record) in _COLUMNS.items():
        stage = "collect" if table == FILES else "tokenize"
        for field in fields(record):
            name, planted = f"{table}.{field.name}", f"one value of {field.name} in a row of {table}"
            yield Mutation(
                f"column/{name}",
                Kind.STORED,
                f"{planted}, with digests that fit",
                ("promote",),
                partial(_forged, table, field.name),
            )
            if stage == "tokenize":
                run = partial(_made, stage, function, table, field.name)
                yield Mutation(f"made/{name}", Kind.STAGE, f"{planted}, before the gates judge", ("gate:*",), run)


def object_files() -> list[str]:
    """Return the kinds of files of objects, as patterns below the store."""
    found = []
    for stage in STAGES:
        found += [f"objects/{stage.kind}/*/{name}" for name in ("manifest.json", "params.json", "report.json")]
        for part in stage.parts:
            names = [table.name for table in part.tables if table.name not in _NOT_MADE]
            names += _SNAPSHOT_FILES if part.only == "snapshot" else ()
            found += [f"objects/{part.kind}/*/{name}" for name in ("manifest.json", "report.json", *names)]
    return found


def _damage(name: str, form: str) -> Mutation:
    return Mutation(
        f"damage:{name}/{form}", Kind.STORED, f"a file {name} {form}", ("fsck",), partial(_damaged, name, FORMS[form])
    )


def _damaged(name: str, damage: Callable[[Path], None], bench: Bench) -> None:
    found = sorted(path for path in bench.store.root.glob(name) if path.is_file())
    if not found:
        raise NotPlantedError(f"no file {name}")
    damage(found[len(found) // 2])
    bench.fsck()


def _linked(name: str, bench: Bench) -> None:
    found = sorted(bench.store.root.glob(name))
    if not found:
        raise NotPlantedError(f"no path {name}")
    place, elsewhere = found[len(found) // 2], bench.folder / "elsewhere"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    bench.fsck()


def _forged(table: str, column: str, bench: Bench) -> None:
    forged = forge_table(bench, table, lambda before: change_value(before, column))
    bench.promote(forged)


def _made(stage: str, function: str, table: str, column: str, bench: Bench) -> None:
    bench.since = stage
    plant.alter_tables(stage, function, lambda tables: tables | {table: change_value(tables[table], column)})
    bench.build()


def change_value(table: pa.Table, column: str) -> pa.Table:
    """Return a table with another value in the middle row of a column, if it has rows."""
    kind = table.schema.field(column).type

    def changed(values: list[Any]) -> list[Any]:
        at = len(values) // 2
        return [_other(value, kind) if index == at else value for index, value in enumerate(values)]

    return plant.edit_column(table, column, changed) if table.num_rows else table


def _other(value: Any, kind: pa.DataType) -> Any:
    """Return another value of an Arrow type."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = list(value or ())
        at = len(values) // 2
        return [*values[:at], _other(values[at] if values else None, kind.value_type), *values[at + 1 :]]
    if pa.types.is_boolean(kind):
        return not value
    if pa.types.is_integer(kind):
        return 1 if value is None else value ^ 1 if value >= 0 else 1
    if pa.types.is_floating(kind):
        return 0.5 if value is None else value / 2 + 0.125
    if pa.types.is_large_binary(kind) or pa.types.is_binary(kind):
        return b"x" + (value or b"")[1:]
    if value in _SPLITS:
        return _SPLITS[value]
    text = value or ""
    return ("b" if text.startswith("a") else "a") + text[1:]
