"""Data and other languages are dropped, and code that resembles it is kept."""

import pytest

from pipeline.lexing.cpp import CPP_LEXER
from pipeline.lexing.lexer import lexed
from pipeline.stages.normalize.filters.code_shapes import MIN_DATA_BYTES, CodeShapes, shapes_of
from pipeline.stages.normalize.filters.filters import MeasuredText, first_broken, score
from pipeline.stages.normalize.params import FilterParams
from tests.pipeline.stages.normalize.filters.good_files import GOOD
from tests.pipeline.stages.normalize.filters.made_blobs import KINDS, blob, foreign_texts

SEEDS = range(10)
CODE = "".join(f"int add_{n}(int a, int b) {{\n  return a + b * {n};\n}}\n" for n in range(40))
TABLE = "const int table[] = {\n" + "  17, 23, 42, 99,\n" * 100 + "};\n"


def reason_of(path: str, text: str) -> str:
    broken = first_broken(score(path, text), FilterParams(), text=MeasuredText.of(path, text))
    return broken.reason if broken else "kept"


def shapes(text: str, is_c: bool = True) -> CodeShapes:
    return shapes_of(lexed(CPP_LEXER, text), is_c)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_nine_of_ten_blobs_of_a_kind_are_dropped(kind: str) -> None:
    assert sum(reason_of(*blob(kind, seed)) != "kept" for seed in SEEDS) >= 0.9 * len(SEEDS)


def test_nine_of_ten_texts_in_other_languages_are_dropped() -> None:
    """A language of lines that C allows, such as that of INI files, is seen for a part alone."""
    found = [reason_of(*blob(kind, seed)) for kind in sorted(foreign_texts()) for seed in SEEDS]

    assert sum(reason != "kept" for reason in found) >= 0.9 * len(found)


def test_of_good_files_that_resemble_blobs_one_at_most_is_dropped() -> None:
    assert len(GOOD) >= 40
    assert sum(reason_of(path, text) != "kept" for path, text in GOOD.items()) <= 1


@pytest.mark.parametrize(("num_tables", "is_data"), [(1, False), (3, False), (30, True)])
def test_a_table_beside_code_is_no_data_until_it_is_more_than_ten_times_as_much(num_tables: int, is_data: bool) -> None:
    counted = shapes(CODE + TABLE * num_tables)

    assert (counted.data_fraction(counted.numeric) > FilterParams().max_numeric_fraction) == is_data


def test_a_small_table_is_no_data() -> None:
    counted = shapes("const int table[] = {" + "7, " * 100 + "};")

    assert 0 < counted.numeric < MIN_DATA_BYTES
    assert counted.data_fraction(counted.numeric) == 0


def test_tables_of_strings_are_strings_and_no_numbers() -> None:
    counted = shapes("const char *names[] = {\n" + '  "amber", "basin",\n' * 200 + "};\n")

    assert counted.numeric == 0
    assert counted.data_fraction(counted.strings) > 0.95


def test_comments_are_no_data_and_no_lines_of_another_language() -> None:
    prose = "/* These are words of a sentence,\n   1, 2, 3, 4, 5, 6 */\n" * 90

    assert shapes(prose + CODE).num_bytes == shapes(CODE).num_bytes
    assert shapes(prose + CODE).foreign_fraction == 0


def test_what_is_not_read_as_c_has_no_lines_of_another_language() -> None:
    text = "def add(a, b):\n  return a + b\n" * 30

    assert shapes(text).foreign_fraction > 0.2
    assert shapes(text, is_c=False).foreign_fraction == 0


def test_the_detail_of_a_drop_says_what_most_lines_are() -> None:
    text = "import os\n" * 40

    assert shapes(text).most_foreign == "a statement that C does not have, in 40 of 40 lines"
    broken = first_broken(
        score("a.c", text * 2), FilterParams(min_unique_line_fraction=0), text=MeasuredText.of("a.c", text * 2)
    )
    assert broken is not None
    assert "in 80 of 80 lines" in broken.detail
