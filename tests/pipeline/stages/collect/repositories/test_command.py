"""The git command: isolated from settings, hooks and filters, ended at its deadline, and its messages."""

import time
from pathlib import Path

import pytest

from pipeline.stages.collect.kinds.git import GitPin
from pipeline.stages.collect.params import RetryPolicy
from pipeline.stages.collect.repositories.command import error_message
from pipeline.stages.collect.stage import run
from tests.pipeline.stages.collect.collected_commits import failure, pin_of, rows
from tests.pipeline.stages.collect.conftest import Create
from tests.support.git_repository import Repository


def test_neither_hooks_nor_filters_nor_settings_have_a_say(
    surroundings: Create, repository: Repository, retry: RetryPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = tmp_path / "executed"
    touch = f"touch {witness}; cat"
    repository.write(".gitattributes", b"*.c filter=evil text eol=crlf ident diff=evil\n")
    repository.write(
        ".gitmodules", f'[submodule "x"]\n\tpath = x\n\turl = ext::{touch}\n\tupdate = !{touch}\n'.encode()
    )
    commit = repository.commit(a__c="$Id$\nint a;\n")
    hostile = tmp_path / "home" / ".gitconfig"
    hostile.parent.mkdir()
    hostile.write_text(
        f'[filter "evil"]\n\tsmudge = {touch}\n[diff "evil"]\n\ttextconv = {touch}\n[core]\n\thooksPath = {tmp_path}/hooks\n'
        f"\tfsmonitor = {touch}\n[init]\n\ttemplateDir = {tmp_path}/hooks\n[uploadpack]\n\tpackObjectsHook = {touch}\n"
        f'[url "ext::{touch}"]\n\tinsteadOf = file://\n'
    )
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        hook = tmp_path / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{touch}\n")
        hook.chmod(0o755)
    monkeypatch.setenv("HOME", str(hostile.parent))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(tmp_path / "hooks"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", touch)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    context = surroundings(pin_of(repository, commit, history=True))
    assert run(context, retry).failures == {}
    assert rows(context, "files.parquet", "content") == [(b"$Id$\nint a;\n",)]
    assert not witness.exists()


def test_an_attempt_that_never_ends_is_ended(
    surroundings: Create, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\nexec sleep 30\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    context = surroundings(GitPin(name="demo", url="ssh://forge.test/r", commit="b" * 40))
    started = time.monotonic()
    error = failure(context, RetryPolicy(num_attempts=1, deadline_seconds=0.5))
    assert "did not finish within" in str(error)
    assert time.monotonic() - started < 20


def test_what_a_server_says_is_fit_for_a_terminal() -> None:
    message = error_message(b"remote: \x1b]0;title\x07 red\nfatal: the \xff end\n")
    assert message == "remote: ?]0;title? red; fatal: the \ufffd end"
