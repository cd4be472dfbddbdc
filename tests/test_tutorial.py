"""Each command of docs/tutorial.md does what it says, in that order, on a folder of a few files."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from pipeline.build.recipes import expected_params, recipe_of
from pipeline.build.stage_objects import parts_of
from pipeline.cli.main import main as pipeline_main
from pipeline.core.records import Split
from pipeline.core.table_names import DOCUMENTS
from pipeline.lineage.stored_build import stored_build
from pipeline.pins.held_out import HeldOut
from pipeline.store.store import Store
from tests.support.git_repository import Repository
from tests.support.paths import ROOT
from trainer.__main__ import main as trainer_main

PROGRAMS = {"python -m pipeline ": pipeline_main, "python -m trainer ": trainer_main}
FUNCTION = """
/* Returns the place of the {name} in a line, or -1. */
static int find_{name}(const char *line, int length, char {name}) {{
    for (int place = 0; place < length; place++) {{
        if (line[place] == {name}) {{
            return place + {number};
        }}
    }}
    return -1;
}}
"""
FILES = {
    "parser/lexer.c": ("comma", "quote", "brace"),
    "parser/tree.c": ("node", "leaf"),
    "tools/print.c": ("tab", "blank"),
}


def blocks(language: str) -> list[str]:
    page = (ROOT / "docs" / "tutorial.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the code and with the files that the page shows."""
    for path, names in FILES.items():
        (tmp_path / "code" / path).parent.mkdir(parents=True, exist_ok=True)
        functions = (FUNCTION.format(name=name, number=len(path) + len(name)) for name in names)
        (tmp_path / "code" / path).write_text("".join(functions))
    parser = Repository(tmp_path / "code" / "parser")
    parser.git("init", "--quiet")
    parser.commit()
    for block in blocks("toml"):
        (tmp_path / block.partition("\n")[0].removeprefix("# ")).write_text(block)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_STORE", str(tmp_path / "store"))
    return tmp_path


def held_out_documents(store: Store, corpus: str) -> list[str]:
    parts = parts_of(stored_build(store, corpus).stage("normalize"))
    tables = [
        store.read(parts[source]).table(DOCUMENTS, ["path", "split"]).to_pylist() for source in ("parser", "tools")
    ]
    return [row["path"] for table in tables for row in table if row["split"] == Split.HELD_OUT]


@pytest.mark.slow  # a build, with the trainer's proof of it, and four trainings
def test_every_command_of_the_page_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    setting, *lines = "".join(blocks("sh")).splitlines()
    assert setting == "export SLUICE_STORE=$PWD/store"
    for line in lines:
        if line.startswith("git "):
            subprocess.run(line, shell=True, check=True)
            continue
        told, append, into = line.partition(" >> ") if " >> " in line else line.partition(" > ")
        (program,) = (name for name in PROGRAMS if told.startswith(name))
        capsys.readouterr()
        code = PROGRAMS[program](shlex.split(told.removeprefix(program)))
        said = capsys.readouterr()
        assert code == 0, f"{line}: {said.err}"
        if into:
            with (folder / into).open("a" if ">>" in append else "w") as file:
                file.write(said.out)

    store = Store(folder / "store")
    assert store.ref("ours", "live") == store.ref("ours", "candidate")
    assert held_out_documents(store, "shares") == ["print.c"]
    assert recipe_of("hashed.toml").params.held_out == HeldOut(hash_fraction=0.3, hash_salt="2026")
    result = json.loads((folder / "run" / "result.json").read_text())
    assert (result["steps"], result["config"]["model"]["width"]) == (6, 32)
    more = json.loads((folder / "more" / "result.json").read_text())
    assert (more["steps"], more["config"]["optimizer"]["peak_learning_rate"]) == (2, 1e-3)
    assert json.loads((folder / "schema.json").read_text())["properties"]["tokenize"]
    expected = expected_params("ours", folder / "corpora.toml")
    assert expected is not None
    assert expected.normalize.filters.max_num_bytes == 400_000
    assert recipe_of("recipe.toml").params.normalize.filters.max_num_bytes == 500_000
