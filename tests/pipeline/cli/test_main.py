"""The command line lists its commands, and prints one JSON value or one line about a mistake."""

import argparse
from typing import Any

import pytest
from rich.console import Console

from pipeline.cli.declaration import COMMANDS, CliCommand, add_corpus
from pipeline.cli.main import main
from pipeline.store.store import Store
from tests.pipeline.cli.conftest import Run


def test_a_command_registered_at_run_time_is_listed_and_run(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    def count(options: argparse.Namespace, store: Store, person: Console) -> tuple[int, dict[str, Any]]:
        return 0, {"corpus": options.corpus, "num_refs": len(store.refs(options.corpus))}

    assert run("count")[0] == 2
    with COMMANDS.registered(CliCommand("count", "count the refs of a corpus", count, add_corpus)):
        with pytest.raises(SystemExit):
            main(["--help"])
        assert "count the refs of a corpus" in capsys.readouterr().out
        assert run("count", "--corpus", "tiny")[:2] == (0, {"corpus": "tiny", "num_refs": 0})
