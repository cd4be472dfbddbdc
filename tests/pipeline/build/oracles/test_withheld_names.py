"""An audit finds the files whose paths are withheld, by the collected paths alone."""

from collections import Counter

import pytest

from pipeline.build.oracles.withheld_names import names_as_collected, rows_as_collected, stands_for_another
from pipeline.contracts.withheld_paths import withheld_path

CHANGE = f"{'0a' * 20}:token.c"
PATHS = ["a.c", "token.c", CHANGE, "caf\udce9.c"]


@pytest.mark.parametrize("path", PATHS[1:])
def test_rows_and_names_are_called_as_they_were_collected(path: str) -> None:
    called = withheld_path(path)
    names = Counter({("mine", called): 1, ("mine", "a.c"): 2, ("other", called): 3})

    assert stands_for_another(called)
    assert [row["path"] for row in rows_as_collected([{"path": called}, {"path": "a.c"}], PATHS)] == [path, "a.c"]
    found = names_as_collected(names, [("mine", each) for each in PATHS])
    assert found == Counter({("mine", path): 1, ("mine", "a.c"): 2, ("other", called): 3})


def test_a_withheld_name_of_no_file_stays_unknown() -> None:
    called = withheld_path("gone.c")
    assert [row["path"] for row in rows_as_collected([{"path": called}], PATHS)] == [called]
