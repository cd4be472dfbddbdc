"""The oracle of splits: globs and hashes by hand, and documents and rows of a mixed source that are elsewhere."""

from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.oracles.snapshots.held_out_documents import num_in_another_split, split_of_file
from pipeline.core.table_names import PACKED, TOKENS, TRAINING_ROWS
from pipeline.pins.held_out import HeldOut


def rule(**fields: Any) -> dict[str, Any]:
    return HeldOut(**fields).model_dump(mode="json")


@pytest.mark.parametrize(
    ("glob", "path", "is_held_out"),
    [
        ("s/*.c", "a.c", True),
        ("s/*.c", "d/a.c", False),
        ("s/**/*.c", "a.c", True),
        ("s/**/*.c", "d/e/a.c", True),
        ("**/e/*", "d/e/a.c", True),
        ("s/**", "d/a.c", True),
        ("s/**", "a.c", True),
        ("?/a?c", "a.c", True),
        ("s/*a*b*.c", "xaxbx.c", True),
        ("s/*a*b*.c", "xbxax.c", False),
        ("s", "a.c", False),
        ("s/d", "d/a.c", False),
    ],
)
def test_a_glob_is_matched_folder_by_folder(glob: str, path: str, is_held_out: bool) -> None:
    assert (split_of_file(rule(globs=(glob,)), "s", path) == "held_out") is is_held_out


def test_a_hash_is_held_out_below_the_fraction() -> None:
    number = int(blake2b(b"salt\0s/a.c", digest_size=8, person=b"sluice/held-out").hexdigest(), 16)
    below, above = (rule(hash_fraction=place / 2**64, hash_salt="salt") for place in (number - 2**12, number + 2**12))
    assert (split_of_file(below, "s", "a.c"), split_of_file(above, "s", "a.c")) == ("train", "held_out")


class _Stored:
    """The rows of a source with two documents, of which `b.c` is to be held out."""

    def __init__(self, labels: tuple[str, str], packed: dict[str, list[list[str]]], num_mapped: dict[str, int]) -> None:
        self._tables = {
            TOKENS: pa.table({"document_id": ["a", "b"], "path": ["a.c", "b.c"], "split": list(labels)}),
            **{
                PACKED[split]: pa.table({"source_doc_ids": pa.array(packed[split], pa.list_(pa.string()))})
                for split in PACKED
            },
            **{TRAINING_ROWS[split]: pa.table({"lengths": list(range(num_mapped[split]))}) for split in TRAINING_ROWS},
        }

    def table(self, name: str, columns: list[str]) -> pa.Table:
        return self._tables[name].select(columns)


@pytest.mark.parametrize(
    ("labels", "packed", "num_mapped", "wrong"),
    [
        (("train", "held_out"), ([["a"]], [["b"]]), (1, 1), 0),
        (("train", "train"), ([["a"]], [["b"]]), (1, 1), 1),
        (("train", "held_out"), ([["a", "b"]], [["b"]]), (1, 1), 1),
        (("train", "held_out"), ([["a"]], [["b"], ["a"]]), (1, 2), 1),
        (("train", "held_out"), ([["a"]], [["b"]]), (3, 1), 2),
    ],
)
def test_a_label_a_row_and_a_mapped_row_of_the_other_split_count(
    labels: tuple[str, str], packed: tuple[list[list[str]], ...], num_mapped: tuple[int, ...], wrong: int
) -> None:
    stored = _Stored(labels, dict(zip(PACKED, packed, strict=True)), dict(zip(PACKED, num_mapped, strict=True)))
    assert num_in_another_split("s", stored, rule(globs=("s/b.*",))) == wrong  # type: ignore[arg-type]
