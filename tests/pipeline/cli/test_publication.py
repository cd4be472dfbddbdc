"""Export formats and descriptions are declared once: one that a program registers is offered and written."""

import pytest

from pipeline.cli.main import main
from pipeline.cli.publication import DESCRIPTIONS
from pipeline.export.export import ExportFormat
from pipeline.store.store import Store


def test_a_description_registered_at_run_time_is_listed_and_printed(
    tiny_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["card", "--corpus", "tiny", "--as", "facts", "--store", str(tiny_store.root)]
    assert main(command) == 2
    with DESCRIPTIONS.registered(ExportFormat("facts", "builtins:repr", "the facts themselves")):
        with pytest.raises(SystemExit):
            main(["card", "--help"])
        assert "facts: the facts themselves" in " ".join(capsys.readouterr().out.split())
        assert main(command) == 0
    assert capsys.readouterr().out.startswith("Facts(snapshot=")
