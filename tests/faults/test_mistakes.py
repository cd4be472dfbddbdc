"""Mistakes on the command lines: each ends in the right exit code, and in a sentence with object, found, expected and next step."""

import argparse
import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import kernels.__main__ as kernels_main
from assets import demo, instance, web
from pipeline.build.withdrawal import withdraw
from pipeline.cli.declaration import COMMANDS
from pipeline.cli.main import _parser as pipeline_parser
from pipeline.cli.main import main as pipeline_main
from pipeline.core.command_line import OF_A_CORPUS
from pipeline.core.errors import MAX_MESSAGE
from pipeline.store.bundles.archive_members import ArchiveWriter
from pipeline.store.store import Store
from trainer.__main__ import build_parser as trainer_parser
from trainer.__main__ import main as trainer_main

PIN = f'[[pin]]\nname = "mine"\nkind = "local"\npath = "tree"\ndigest = "{"0" * 64}"\ndeclared_license = "MIT"\n'
GIT = '[[pin]]\nname = "a"\nkind = "git"\nurl = "https://example.org/a.git"\ncommit = "main"\n'
DECISION = '[[decision]]\nsource = "mine"\npath = "main.c"\nreason = "r"\nperson = "p"\n'
FILES = {
    "tree/main.c": "int a;\n",
    "none/a.txt": "",
    "items/a.jsonl": "{nope\n",
    "file": "text\n",
    "mine.toml": PIN,
    "json.toml": '{"pin": []}',
    "bytes.toml": b'name = "\xff"',
    "empty.toml": "",
    "zeros.bin": b"\0" * 8,
    "field.toml": PIN.replace("license", "licence"),
    "kind.toml": PIN.replace("local", "folder"),
    "twice.toml": PIN + PIN,
    "plural.toml": PIN.replace("[[pin]]", "[[pins]]"),
    "branch.toml": GIT,
    "short.toml": GIT.replace("main", "abc1234"),
    "digest.toml": PIN.replace("0" * 64, "none"),
    "type.toml": PIN.replace('"MIT"', "42"),
    "license.toml": PIN.replace("MIT", "MIT OR Zlb"),
    "terms.toml": PIN.replace("MIT", "see COPYING"),
    "escape.toml": PIN.replace("mine", r"mine\u001b[2J"),
    "newline.toml": PIN.replace("tree", r"tree\n"),
    "name.toml": PIN.replace("mine", "My code"),
    "source.toml": DECISION.replace("mine", "mnie") + 'license = "MIT"\n',
    "reason.toml": DECISION.replace("reason", "because") + 'license = "MIT"\n',
    "release.toml": DECISION + 'release = ["generatd"]\n',
    "both.toml": DECISION + 'license = "MIT"\nrelease = ["generated"]\n',
    "field-of-recipe.toml": 'base = "quick"\n[normalize.filters]\nmax_num_byte = 5\n',
    "type-of-recipe.toml": 'base = "quick"\n[tokenize]\nrow_length = "512"\n',
    "date.toml": "[tokenize]\nrow_length = 2020-01-01\n",
    "itself.toml": 'base = "itself.toml"\n',
    "first.toml": 'base = "second.toml"\n',
    "second.toml": 'base = "first.toml"\n',
    "no-base.toml": 'base = "quik"\n',
    "no-pins.toml": "[tokenize]\nrow_length = 512\n",
    "training.toml": "[optimizer]\nweight_decay = 0.2\n",
    "building.toml": "[tokenize]\nrow_length = 512\n",
    "no-model.toml": "batch_rows = 4\n",
    "line.toml": DECISION + 'waive = "secret"\nline = 0\n',
}
"""Path below {folder} -> what is there, most of it wrong."""

TABLE = (Path(__file__).parent / "mistakes.txt").read_text(encoding="utf-8")
COMMAND_NAMES = {"trainer", *(command.name.split()[0] for command in COMMANDS), "checkpoints", "train"}
MISTAKES = [block.splitlines() for block in TABLE.split("\n\n") if not block.startswith("#")]
"""A command; its exit code, and the words about what it is, what was found, what was expected, and what to do."""


@pytest.fixture(scope="module")
def places(tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Values of the names in the braces of the table: a folder of files, a copy of the built store, and ids in it."""
    folder = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    for name, line in {"newer": "99 " + "0" * 64, "older": "2 " + "0" * 64}.items():
        (folder / name).mkdir()
        (folder / name / "format").write_text(line)
    with (folder / "newer.bundle").open("wb") as file:
        ArchiveWriter(file).add("bundle.json", 20, [b'{"format_version":2}'])
    (folder / "link").symlink_to(folder / "nowhere")
    (folder / "circle").symlink_to(folder / "circle")
    store = Store(shutil.copytree(tiny_store.root, folder / "store"))
    withdraw(Store(shutil.copytree(tiny_store.root, folder / "withdrawn")), "lantern/include/lantern/log.hpp", "asked")
    log = shutil.copytree(folder / "withdrawn", folder / "damaged") / "log" / "withdrawals.jsonl"
    log.write_bytes(log.read_bytes().replace(b"asked", b"asled"))
    store.move_ref("two", "collect", None, store.refs("tiny")["collect"], "a second corpus")
    ids = {"live": store.refs("tiny")["live"], "stage": store.refs("tiny")["normalize"], "zeros": "0" * 64}
    return {"folder": str(folder), "store": str(store.root), **ids}


def judged(message: str, words: list[str], places: dict[str, str]) -> None:
    """Assert that a message is one short sentence that has these words in this order."""
    assert "Traceback" not in message
    assert len(message) <= MAX_MESSAGE + len("error UsageError: ")
    rest = message
    for word in words:
        shown = word.strip().format(**places)
        assert shown in rest, f"{shown!r} in {message!r}"
        rest = rest.partition(shown)[2]


@pytest.mark.parametrize("row", MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_mistake_ends_in_what_was_found_what_was_expected_and_what_to_do(
    row: list[str], places: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command, answer = row
    program, *arguments = shlex.split(command.format(**places))
    code, *words = answer.split(" | ")
    assert len(words) == 4, "what it is about, found, expected, next"
    before = kept_in(places)

    if program in ("pipeline", "trainer"):
        line = arguments if "--store" in arguments or not arguments else [*arguments, "--store", places["store"]]
        found = (pipeline_main if program == "pipeline" else trainer_main)([*line, "--json"])
        message = json.loads(capsys.readouterr().out)["message"]
    else:
        found, message = ended(program, arguments, monkeypatch), capsys.readouterr().err
    assert found == int(code)
    judged(message, words, places)
    for text in re.findall("`([^`]+)`", message):
        refuse_unless_pasted(text, arguments, places)
    assert kept_in(places) == before, "a mistake changes nothing"


PROGRAMS = {"pipeline": (pipeline_main, pipeline_parser), "trainer": (trainer_main, trainer_parser)}
ANSWERS = (
    "pipeline show",
    "pipeline config",
    "pipeline withdraw",
    "pipeline fsck",
    "trainer checkpoints list",
    "trainer config",
)
"""Commands that are run as a message names them: they answer, and change nothing."""
RUN: set[str] = set()


def refuse_unless_pasted(text: str, arguments: list[str], places: dict[str, str]) -> None:
    """Assert of a text in backticks that a command is named whole, with the corpus and the store that the mistake was about."""
    words = shlex.split(text)
    assert words[0] not in COMMAND_NAMES, f"`{text}` names no program"
    if words[:2] != ["python", "-m"] or words[2] not in PROGRAMS or {"--help", "..."} & set(words):
        return
    command = " ".join(words[2:5] if words[3] in ("checkpoints", "snapshot", "cache") else words[2:4])
    assert "--store" in words, text
    if "--corpus" in arguments and command in OF_A_CORPUS:
        assert words[words.index("--corpus") + 1] == arguments[arguments.index("--corpus") + 1], text
    if any(word.isupper() for word in words):  # what people fill in
        return
    main, build_parser = PROGRAMS[words[2]]
    assert build_parser().parse_args(words[3:])
    if (
        command in ANSWERS
        and "--undo" not in words
        and not {"damaged", "newer"} & set(text.split("/"))
        and text not in RUN
    ):
        RUN.add(text)
        assert main([*words[3:], "--quiet"]) == 0, text


def kept_in(places: dict[str, str]) -> list[Path]:
    """Return the paths in the store, but for locks and empty folders of scratch files."""
    return sorted(
        path
        for path in Path(places["store"]).rglob("*")
        if not {"locks", "tmp"} & set(path.relative_to(places["store"]).parts)
    )


def ended(program: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the exit code of a program that ends its process where its arguments are wrong."""
    monkeypatch.setattr("sys.argv", [program, *arguments])
    mains: dict[str, Callable[[], int]] = {
        "demo": demo.main,
        "kernels": kernels_main.main,
        "web": lambda: web.main(arguments),
        "instance": lambda: instance.main(arguments),
    }
    with pytest.raises(SystemExit) as ending:
        mains[program]()
    assert isinstance(ending.value.code, int)
    return ending.value.code


def test_the_table_holds_many_mistakes_in_every_command() -> None:
    assert len({row[0] for row in MISTAKES}) == len(MISTAKES) >= 70


def options_of(parser: argparse.ArgumentParser, name: str) -> dict[str, set[str]]:
    """Return the options of each command of a parser, by its name."""
    found: dict[str, set[str]] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                found |= options_of(inner, f"{name} {word}")
            return found
    return {name: {option for action in parser._actions for option in action.option_strings}}


def test_messages_give_each_command_the_corpus_and_the_store_that_it_takes() -> None:
    options = options_of(pipeline_parser(), "pipeline") | options_of(trainer_parser(), "trainer")
    makers = {
        "pipeline build",
        "pipeline snapshot import",
        "pipeline vocabulary",
        "pipeline withdraw",
        "trainer cache sync",
    }
    assert {name for name, each in options.items() if "--corpus" in each} - makers == OF_A_CORPUS
    assert all("--store" in each for each in options.values())
