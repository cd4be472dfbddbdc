"""The commands that prove a trainer refuse a gate, a row and a state that they do not know."""

import json

import pytest

from pipeline.store.store import Store
from trainer.__main__ import main


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["accept", "--only", "hopes"], "gate hopes: "),
        (["bench", "--dry-run", "--only", "hopes"], "row hopes: "),
        (
            ["verify-loader", "--corpus", "tiny", "--steps", "0", "--recipe", "huge"],
            "training recipe huge: it is not registered",
        ),
    ],
)
def test_an_unknown_name_is_refused(
    tiny_store: Store, capsys: pytest.CaptureFixture[str], line: list[str], message: str
) -> None:
    code = main([*line, "--json", "--store", str(tiny_store.root)])

    assert code == 1
    assert message in json.loads(capsys.readouterr().out)["message"]
