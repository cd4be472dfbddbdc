"""Sources of kind git: one commit with its files, bounded in bytes and time, fetched once."""

import hashlib
import json
import shutil
import subprocess
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.core.errors import ArchiveError, FetchError, SourceError
from pipeline.stages.collect.kinds.git import GitPin
from pipeline.stages.collect.params import CollectParams, RetryPolicy
from pipeline.stages.collect.stage import run
from pipeline.store.fsck import fsck
from pipeline.store.store import Store
from tests.pipeline.stages.collect.collected_commits import failure, pin_of, rows
from tests.pipeline.stages.collect.conftest import Create
from tests.support import git_repository as made
from tests.support.git_repository import Repository


@pytest.mark.parametrize("hash_name", ["sha1", "sha256"])
def test_a_commit_gives_its_files_and_names_what_it_left_out(
    surroundings: Create, tmp_path: Path, retry: RetryPolicy, hash_name: str
) -> None:
    repository = made.create(tmp_path / "repository", hash_name)
    repository.commit(old__c="int old;\n")
    repository.git("rm", "-q", "old.c")
    repository.write("src/deep/a.cpp", b"int a;\r\n")
    repository.write("LICENSE", b"MIT License\n")
    repository.write("notes.txt", b"words")
    (repository.folder / "link.h").symlink_to("src/deep/outside.h")
    (repository.folder / "vendor" / "lib").mkdir(parents=True)
    empty_id = repository.git("hash-object", "-t", "blob", "--stdin")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{empty_id},vendor/lib")
    commit = repository.commit()
    repository.commit(later__c="int later;\n")
    context = surroundings(pin_of(repository, commit))
    assert run(context, retry).failures == {}

    blob = repository.git("hash-object", "--stdin", stdin=b"int a;\r\n")
    path, content, revision, blob_id = rows(context, "files.parquet", "path", "content", "revision", "git_blob_id")[1]
    assert (path, content, revision) == ("src/deep/a.cpp", b"int a;\r\n", commit)
    assert blob_id == (blob if hash_name == "sha1" else hashlib.sha1(b"blob 8\0int a;\r\n").hexdigest())
    assert rows(context, "dropped.parquet", "path", "reason", "detail") == [
        ("link.h", "link", "src/deep/outside.h"),
        ("notes.txt", "other_language", ""),
        ("vendor/lib", "submodule", f"commit {empty_id}"),
    ]
    assert "history.parquet" not in context.made["demo"].tables


def test_only_the_commit_is_fetched_and_neither_its_past_nor_its_future(
    surroundings: Create, repository: Repository, retry: RetryPolicy
) -> None:
    before = repository.commit(a__c="int a;\n")
    commit = repository.commit(a__c="int aa;\n")
    context = surroundings(pin_of(repository, commit))
    run(context, retry)
    (pack,) = [context.blob(sha256) for sha256 in context.names.values()]
    listing = subprocess.run(
        ["git", "index-pack", "--stdin", "-v"], cwd=_bare(repository), stdin=pack.open("rb"), check=True
    )  # type: ignore[union-attr]
    assert listing.returncode == 0
    kept = subprocess.run(
        ["git", "cat-file", "--batch-check", "--batch-all-objects"],
        cwd=_bare(repository),
        capture_output=True,
        check=True,
    ).stdout.decode()
    assert commit in kept
    assert before not in kept


def _bare(repository: Repository) -> Path:
    folder = repository.folder.parent / "bare.git"
    if not folder.exists():
        subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    return folder


@pytest.mark.parametrize("history", [False, True])
def test_a_commit_comes_over_http(
    surroundings: Create, repository: Repository, retry: RetryPolicy, monkeypatch: pytest.MonkeyPatch, history: bool
) -> None:
    repository.commit(a__c="int a;\n")
    commit = repository.commit(a__c="int aa;\n")
    repository.commit(a__c="int aaa;\n")
    server = ThreadingHTTPServer(("127.0.0.1", 0), made.smart_handler(repository.folder.parent))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    url = f"http://127.0.0.1:{server.server_port}/{repository.folder.name}/.git"
    context = surroundings(GitPin(name="demo", url=url, commit=commit, history=history))
    try:
        assert run(context, retry).failures == {}
    finally:
        server.shutdown()
        server.server_close()
    assert rows(context, "files.parquet", "content") == [(b"int aa;\n",)]


def test_a_commit_comes_over_ssh(
    surroundings: Create, repository: Repository, retry: RetryPolicy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commit = repository.commit(a__c="int a;\n")
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nfor last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    context = surroundings(GitPin(name="demo", url=f"ssh://git@forge.test{repository.folder}", commit=commit))
    assert run(context, retry).failures == {}
    assert rows(context, "files.parquet", "path") == [("a.c",)]
    assert "git@forge.test git-upload-pack" in (tmp_path / "asked").read_text()


def test_more_bytes_than_the_limit_are_refused_on_their_way_and_in_the_tree(
    surroundings: Create, repository: Repository, retry: RetryPolicy
) -> None:
    noise = "".join(hashlib.sha256(str(number).encode()).hexdigest() for number in range(2000))
    one = repository.commit(a__c=noise)
    other = repository.commit(a__c="int a;\n" * 1000)
    for commit, message in ((one, "sends too much"), (other, "has 7000 bytes; expected at most 4096")):
        context = surroundings(pin_of(repository, commit))
        context.params = CollectParams(max_total_bytes=4096)
        error = failure(context, retry)
        assert message in str(error), str(error)
        assert isinstance(error, ArchiveError)


def test_a_second_build_needs_no_repository_and_one_with_history_serves_without(
    surroundings: Create, repository: Repository, retry: RetryPolicy
) -> None:
    repository.commit(a__c="int a;\n")
    commit = repository.commit(a__c="int aa;\n")
    context = surroundings(pin_of(repository, commit, history=True))
    assert run(context, retry).failures == {}
    shutil.rmtree(repository.folder)
    offline = surroundings(pin_of(repository, commit), offline=True)
    offline.names = context.names
    assert run(offline, retry).failures == {}
    assert rows(offline, "files.parquet", "content") == [(b"int aa;\n",)]


def test_a_commit_without_its_past_in_the_store_does_not_serve_for_history(
    surroundings: Create, repository: Repository, retry: RetryPolicy
) -> None:
    commit = repository.commit(a__c="int a;\n")
    context = surroundings(pin_of(repository, commit))
    run(context, retry)
    offline = surroundings(pin_of(repository, commit, history=True), offline=True)
    offline.names = context.names
    error = failure(offline, retry)
    assert isinstance(error, FetchError)
    assert f"commit {commit} with its history is not in the store" in str(error)


def test_a_commit_goes_through_the_store_into_documents_and_a_second_build_needs_no_repository(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tag = "// SPDX-License-" + "Identifier: MIT\n"
    lines = [f"int f{number}(int a) {{ return a * {number} + {number % 7}; }}\n" for number in range(60)]
    repository.commit(a__c=tag + "".join(lines))
    commit = repository.commit(a__c=tag + "".join(lines[1:]))
    pins = tmp_path / "pins.toml"
    entry = f'name = "demo"\nkind = "git"\nurl = "{repository.url}"\ncommit = "{commit}"\nhistory = true'
    pins.write_text(f'[[pin]]\n{entry}\ndeclared_license = "MIT"\n')
    command = ["build", "--recipe", "tiny", "--corpus", "mine", "--pins", str(pins), "--until", "normalize", "--json"]
    command += ["--workers", "1", "--store", str(tmp_path / "store")]
    assert main(command) == 0
    first = json.loads(capsys.readouterr().out)
    assert [stage["rows_out"] for stage in first["stages"]] == [2, 2]  # the file and its change
    shutil.rmtree(repository.folder)
    assert main([*command, "--offline"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert [stage["object_id"] for stage in second["stages"]] == [stage["object_id"] for stage in first["stages"]]
    assert fsck(Store(tmp_path / "store")) == []


def test_a_commit_of_a_bundle_is_read_without_a_network(
    surroundings: Create, repository: Repository, tmp_path: Path, retry: RetryPolicy
) -> None:
    commit = repository.commit(a__c="int a;\n")
    bundle = tmp_path / "of.bundle"
    repository.git("bundle", "create", "--quiet", str(bundle), "main")
    context = surroundings(GitPin(name="demo", path=bundle, commit=commit), offline=True)

    assert run(context, retry).failures == {}
    assert rows(context, "files.parquet", "path", "content") == [("a.c", b"int a;\n")]


@pytest.mark.parametrize(
    ("content", "found"),
    [(None, "is not a file"), (b"PACK of no bundle", "could not be fetched"), (b"# v2 git bundle\n", "could not be")],
)
def test_a_path_that_is_no_bundle_is_refused_in_words(
    surroundings: Create, tmp_path: Path, retry: RetryPolicy, content: bytes | None, found: str
) -> None:
    path = tmp_path / "of.bundle"
    if content is not None:
        path.write_bytes(content)
    error = failure(surroundings(GitPin(name="demo", path=path, commit="0" * 40)), retry)

    assert isinstance(error, SourceError)
    assert str(path) in error.found
    assert found in error.found
    assert "git -C" not in error.remedy
    of_folder = failure(surroundings(GitPin(name="demo", path=tmp_path, commit="0" * 40)), retry)
    assert f"Run `git -C {tmp_path} bundle create $PWD/demo.bundle HEAD`" in str(of_folder)


def test_changes_without_a_history_are_said_to_have_no_effect(
    surroundings: Create, repository: Repository, retry: RetryPolicy
) -> None:
    context = surroundings(pin_of(repository, repository.commit(a__c="int a;\n")))
    context.params = CollectParams(with_changes=True)
    output = run(context, retry)

    assert [text.partition(":")[0] for text in output.warnings] == ["`collect.with_changes` has no effect"]
    assert set(context.made["demo"].tables) == {"files.parquet", "dropped.parquet"}
