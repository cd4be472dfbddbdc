"""Commands to run next can be pasted into a shell, and name no file whose name holds a secret."""

import shlex
from pathlib import Path

from pipeline.build.next_questions import first_files, next_questions


def test_the_commands_can_be_pasted_into_a_shell() -> None:
    why, report = next_questions(Path("my store"), "mine", "last", [("code", "it's a.c")])

    assert shlex.split(why)[3:] == [
        "why",
        "code",
        "it's a.c",
        *["--corpus", "mine", "--of", "last", "--store"],
        "my store",
    ]
    assert report == "python -m pipeline report --corpus mine --of last --store 'my store'"
    assert "pipeline show --corpus mine --of last" in next_questions(Path("store"), "mine", "last", (), False)[-1]


def test_three_files_are_named_once_each_and_none_whose_name_holds_a_secret() -> None:
    secret = ("one", "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345" + ".c")
    names = [("one", f"{name}.c") for name in "aabcd"]

    assert first_files([secret, *names]) == (names[0], names[2], names[3])
