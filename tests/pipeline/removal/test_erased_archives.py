"""Every archive of a store that holds withdrawn bytes goes with an erasure, or the receipt names it with who needs it."""

import gzip
import hashlib
import io
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY
from pipeline.build.run_stage import run_stages
from pipeline.build.withdrawal import restore, withdraw, withdraw_all
from pipeline.cli.main import main
from pipeline.core.digests import text_sha256
from pipeline.core.errors import DigestError
from pipeline.core.table_names import VERSIONS
from pipeline.pins.pins import SourcePin
from pipeline.removal.author_files import author_files
from pipeline.removal.erased_archives import bytes_in_archives
from pipeline.removal.erasure import erase
from pipeline.removal.received_contents import received_contents
from pipeline.stages.collect.kinds.git import GitPin
from pipeline.store.fsck import fsck
from pipeline.store.garbage import reclaim
from pipeline.store.store import Store
from tests.pipeline.removal.conftest import FILES_OF, OWN, OWN_SHA256, SHARED, Collected, archive
from tests.support import git_repository as made
from tests.support.git_repository import Repository

GONE, OTHER = "int gone_one(void);\n", "int other(void);\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return made.create(tmp_path / "repository")


def _collect(store: Store, *pins: SourcePin) -> dict[str, str]:
    with open_build(BuildRequest("made", TINY.params, pins, "a test"), store) as build:
        return dict(next(run_stages(build, "collect")).parts)


def _pin(repository: Repository, commit: str, history: bool = True) -> GitPin:
    return GitPin(name="made", url=repository.url, commit=commit, history=history, declared_license="MIT")


def _received(store: Store) -> Iterator[bytes]:
    """Iterate over all that the blobs and the refused bytes of a store hold."""
    for path in sorted(store.root.glob("blobs/*")) + sorted(store.root.glob("rejected/*")):
        yield from (each.content for each in received_contents(path))


def _gc(store: Store) -> tuple[str, ...]:
    return reclaim(store, lambda name: False, with_blobs=True).blobs


@pytest.mark.parametrize("is_collected", [True, False])
def test_the_pack_of_a_commit_whose_source_is_gone_is_erased_too(
    repository: Repository, tmp_path: Path, is_collected: bool
) -> None:
    store = Store(tmp_path / "store")
    first = repository.commit(a__c=GONE, b__c=OTHER)
    _collect(store, _pin(repository, first))
    second = repository.commit(b__c=OTHER * 2)
    _collect(store, _pin(repository, second))
    reclaim(store, lambda name: False)
    withdraw(store, "made/a.c", "a test")
    if is_collected:
        _collect(store, _pin(repository, second))
        reclaim(store, lambda name: False)  # what is left says that it was dropped, and no digest
    assert len(list((store.root / "blobs").iterdir())) == 2

    receipt = erase(store, ["made/a.c"], "a test")[1]
    assert (len(receipt.blobs), receipt.revisions, receipt.held_by) == (2, (second,), ())
    assert list(_received(store)) == []
    _gc(store)
    assert fsck(store) == []


def test_a_pack_that_an_update_of_the_pins_has_fetched_is_erased_too(repository: Repository, tmp_path: Path) -> None:
    store, pins = Store(tmp_path / "store"), tmp_path / "pins.toml"
    first = repository.commit(a__c=GONE)
    _collect(store, _pin(repository, first, history=False))
    repository.commit(b__c=OTHER)
    pins.write_text(f'[[pin]]\nname = "made"\nkind = "git"\nurl = "{repository.url}"\ncommit = "{first}"\n')
    assert main(["pin", "--update", str(pins), "--store", str(store.root)]) == 0
    withdraw(store, f"sha256:{text_sha256(GONE)}", "a test")
    erase(store, [f"sha256:{text_sha256(GONE)}"], "a test")

    assert list(_received(store)) == []
    assert fsck(store) == []


def test_a_refused_download_that_may_hold_the_bytes_is_removed_by_the_command_that_names_it(
    collected: Collected, capsys: pytest.CaptureFixture[str]
) -> None:
    store = collected.store
    with pytest.raises(DigestError):
        store.put_blob([gzip.compress(OWN)[:-8]], "0" * 64, "a download that was cut")
    (refused,) = (store.root / "rejected").iterdir()
    withdraw(store, "made/a.c", "a test")
    assert main(["withdraw", "made/a.c", "--erase", "--store", str(store.root)]) == 0
    shown = capsys.readouterr().out
    next_step = re.search(rf"may still hold a copy: archive {refused.name[:12]}; `python -m pipeline ([^`]*)`", shown)

    assert next_step is not None
    assert main([*shlex.split(next_step[1]), "--yes"]) == 0
    assert not refused.exists()
    assert main(["withdraw", "made/a.c", "--erase", "--store", str(store.root)]) == 0
    assert "may still hold" not in capsys.readouterr().out


def test_an_archive_of_no_source_goes_where_it_holds_the_bytes_and_is_named_where_nobody_knows(
    collected: Collected, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = collected.store
    digests = {}
    for name, content in (("holds", OWN), ("holds-not", b"int x;\n")):
        path = archive(tmp_path, name, {"x/renamed.txt": content}).path
        assert path is not None
        digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        store.put_blob([path.read_bytes()], digests[name], "a test")
        shutil.copy(path, store.root / "blobs" / digests[name])
    (store.root / "rejected").mkdir()
    shutil.copy(store.root / "blobs" / digests["holds"], store.root / "rejected" / digests["holds"])
    part = store.partial_blob("of something")
    part.write_bytes(OWN)
    withdraw(store, "made/a.c", "a test")

    assert main(["withdraw", "made/a.c", "--erase", "--store", str(store.root)]) == 0
    shown = capsys.readouterr().out
    assert OWN not in _received(store)
    assert not part.exists()
    assert {path.name for path in (store.root / "blobs").iterdir()} == {
        digests["holds-not"],
        collected.pins[1].revision,
    }
    assert f"may still hold a copy: archive {digests['holds-not'][:12]}" in shown
    assert "`python -m pipeline gc --blobs" in shown
    assert _gc(store) == (digests["holds-not"],)
    assert fsck(store) == []


def test_an_archive_of_which_a_part_is_not_opened_may_hold_the_bytes_and_is_named_with_that_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = b"7z\xbc\xaf\x27\x1c and so on"
    files = {"made": {"a.c": OWN, "b.c": SHARED}, "other": {"d.c": b"int d;\n", "data/inner.7z": packed}}
    found = Collected(tmp_path / "two", files)
    store, other = found.store, found.pins[1].revision
    withdraw(store, "made/a.c", "a test")
    found.collect()

    held_by = erase(store, ["made/a.c"], "a test")[1].held_by
    (named,) = [each for each in held_by if each["object_id"] == other]
    assert named == {"kind": "archive", "object_id": other, "is_known": False, "sources": ["other"], "num_unread": 1}
    (unread,) = author_files(store, "int d").unread
    assert "1 pieces within it cannot be opened" in unread.error
    assert main(["withdraw", "--erase", "--store", str(store.root)]) == 0
    assert (
        f"may still hold a copy: archive {other[:12]}, of which 1 pieces cannot be opened, of source other; to remove it"
        in (capsys.readouterr().out)
    )


def test_an_archive_that_another_source_was_read_from_without_that_file_is_named(tmp_path: Path) -> None:
    both = {"a.c": GONE.encode(), "b.c": SHARED}
    found = Collected(tmp_path / "both", {"made": both})
    store, pin = found.store, found.pins[0]
    named = archive(tmp_path, "other", both).model_copy(update={"exclude": ("a.c",)})
    parts = _collect(store, pin, named)
    withdraw(store, "made/a.c", "a test")
    receipt = erase(store, ["made/a.c"], "a test")[1]

    holder = {"kind": "collect/part", "object_id": parts["other"], "blobs": [named.revision]}
    assert (receipt.blobs, receipt.held_by) == ((pin.revision,), (holder,))
    digest = f"sha256:{text_sha256(GONE)}"
    withdraw_all(store, [digest], "by its bytes, in every source")
    assert erase(store, [digest], "a test")[1].blobs == (named.revision,)
    assert fsck(store) == []


def test_an_archive_that_was_erased_and_is_here_again_goes_again(collected: Collected) -> None:
    store, pin = collected.store, collected.pins[0]
    whole = (store.root / "blobs" / pin.revision).read_bytes()
    withdraw(store, f"sha256:{OWN_SHA256}", "a test")
    erase(store, [f"sha256:{OWN_SHA256}"], "a test")
    shutil.rmtree(store.root / "objects" / "collect")
    store.put_blob([whole], pin.revision, "a test")
    erase(store, [f"sha256:{OWN_SHA256}"], "a test")
    assert not (store.root / "blobs" / pin.revision).exists()


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_an_archive_stays_for_the_files_of_which_another_name_stays_only_if_it_holds_no_other(
    tmp_path: Path, is_forgotten: bool
) -> None:
    files = {"made": {"a.c": OWN, "b.c": SHARED}, "other": {"c.c": SHARED, "d.c": OTHER.encode()}}
    found = Collected(tmp_path / "two", files)
    store, (pin, other) = found.store, found.pins
    withdraw(store, "made/a.c", "a test")
    if is_forgotten:  # nothing tells any more which bytes a.c had
        found.collect()
        reclaim(store, lambda name: False)
    withdraw(store, "other/c.c", "a test")
    after = found.collect()
    receipt = erase(store, ["made/a.c", "other/c.c"], "a test")[1]

    assert receipt.blobs == tuple(sorted([pin.revision, other.revision]))
    assert OWN not in _received(store)
    holding = [each["object_id"] for each in receipt.held_by if each["kind"] == "collect/part"]
    assert set(holding) == {after["made"], found.first["made"]} & {path.name for path in _objects(store)}
    assert erase(store, ["made/a.c", "other/c.c"], "a test")[0] is None


def _objects(store: Store) -> list[Path]:
    return list(store.root.glob("objects/collect/part/*"))


def test_the_pack_of_a_version_that_goes_by_its_digest_goes_though_other_versions_stay(
    repository: Repository, tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    texts = [OTHER + f"int step_{number}(void);\n" * 3 for number in range(3)]
    for text in [texts[0], texts[1]]:
        repository.commit("Steps of a file", a__c=text)
    pin = _pin(repository, repository.commit("The last step", a__c=texts[2]))
    first = _collect(store, pin)["made"]
    gone = f"sha256:{text_sha256(texts[2])}"
    withdraw(store, gone, "a test")
    _collect(store, pin)
    receipt = erase(store, [gone], "a test")[1]

    assert (len(receipt.blobs), list(_received(store))) == (1, [])
    rows = {row["blob_sha256"]: row["content"] for row in store.read(first).table(VERSIONS).to_pylist()}
    assert rows == {text_sha256(text): text.encode() if text != texts[2] else b"" for text in texts}
    assert fsck(store, [bytes_in_archives]) == []


def test_fsck_names_an_archive_that_holds_erased_bytes_under_no_name_that_stays(
    collected: Collected, tmp_path: Path
) -> None:
    store = collected.store
    for name in ("made/a.c", "made/b.c"):
        withdraw(store, name, "a test")
    erase(store, ["made/a.c", "made/b.c"], "a test")
    assert fsck(store, [bytes_in_archives]) == [], "the other source holds the bytes of b.c, and its archive"

    path = archive(tmp_path, "later", {"x/renamed.txt": OWN}).path
    assert path is not None
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    store.put_blob([path.read_bytes()], sha256, "a test")
    (problem,) = fsck(store, [bytes_in_archives])
    assert problem.startswith(f"blob {sha256[:12]}: it holds the bytes of 1 erased files.")
    assert main(["fsck", "--store", str(store.root)]) == 1
    erase(store, ["made/a.c", "made/b.c"], "a test")
    assert fsck(store, [bytes_in_archives]) == []


def _withdraw_author(
    author: str,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *options: str,
) -> tuple[int, str]:
    monkeypatch.setattr("sys.stdin", io.StringIO(author + "\n"))
    code = main(["withdraw", "--author", *options, "--store", str(store.root)])
    shown = capsys.readouterr()
    assert author not in shown.out + shown.err
    return code, shown.out


def test_who_made_commits_is_told_and_goes_with_the_packs(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "store")
    repository.commit(a__c=GONE)
    repository.commit("Again\n\nReviewed-by: Ada Example <ada.e@host.org>", a__c=OTHER)
    commit = repository.commit(notes__txt="by Ada Example")
    parts = _collect(store, _pin(repository, commit))

    code, shown = _withdraw_author("a@example.com", store, monkeypatch, capsys)
    assert (code, store.withdrawals()) == (0, [])
    assert "0 files name the author" in shown
    assert "author or committer of commits: made 3." in shown
    assert "only `withdraw --author --erase`, given the author again, removes the packs" in " ".join(shown.split())
    assert "nothing is withdrawn" in shown
    code, shown = _withdraw_author("ada.e@host.org", store, monkeypatch, capsys, "--json")
    answer = json.loads(shown)
    assert (answer["commits"], answer["others"], answer["num_files"]) == ({}, {"made": 1}, 0)
    assert json.loads(_withdraw_author("Ada Example", store, monkeypatch, capsys, "--json")[1])["others"] == {"made": 2}

    (pack,) = (path.name for path in (store.root / "blobs").iterdir())
    code, shown = _withdraw_author("a@example.com", store, monkeypatch, capsys, "--erase", "--json")
    receipt = json.loads(shown)["receipt"]
    assert (code, receipt["blobs"], receipt["num_commits"]) == (0, [pack], {pack: 3})
    assert (list(_received(store)), store.active_withdrawals(), fsck(store)) == ([], [], [])
    assert receipt["id"] in {kept.object_id for kept in reclaim(store, lambda name: False, with_blobs=True).kept} | {
        path.parent.name for path in store.root.glob("objects/withdrawal/receipt/*/manifest.json")
    }
    assert _collect(store, _pin(repository, commit)) == parts
    assert list(_received(store)) == [], "what was erased is not fetched for a source that is known"


def test_a_pack_that_went_for_a_person_and_is_here_again_is_named_and_erased_again(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store, where = Store(tmp_path / "store"), ["--store", str(tmp_path / "store")]
    pin = _pin(repository, repository.commit(a__c=GONE))
    _collect(store, pin)
    _withdraw_author("a@example.com", store, monkeypatch, capsys, "--erase")
    shutil.rmtree(store.root / "objects" / "collect")
    _collect(store, pin)
    (pack,) = (path.name for path in (store.root / "blobs").iterdir())

    (problem,) = fsck(store, [bytes_in_archives])
    assert problem.startswith(f"blob {pack[:12]}: it is here again, though erased on")
    assert "`python -m pipeline withdraw --erase`" in problem
    assert main(["withdraw", "--erase", "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)["receipt"]["num_commits"] == {pack: 1}
    assert (list(_received(store)), fsck(store, [bytes_in_archives])) == ([], [])
    assert main(["withdraw", "--erase", *where]) == 2
    assert "--erase finds nothing that is withdrawn" in " ".join(capsys.readouterr().err.split())


def test_after_an_undo_an_archive_is_asked_for_the_bytes_of_the_others_alone(
    collected: Collected, tmp_path: Path
) -> None:
    store, names = collected.store, ["made/a.c", "other/d.c"]
    withdraw_all(store, names, "a test")
    erase(store, names, "a test")
    restore(store, "other/d.c", "a mistake")
    digests = {}
    for name, content in (("owned", OWN), ("taken-back", FILES_OF["other"]["d.c"])):
        path = archive(tmp_path, name, {"x/renamed.txt": content}).path
        assert path is not None
        digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        store.put_blob([path.read_bytes()], digests[name], "a test")

    (problem,) = fsck(store, [bytes_in_archives])
    assert problem.startswith(f"blob {digests['owned'][:12]}: it holds the bytes of 1 erased files.")
    receipt = erase(store, ["made/a.c"], "a test")[1]
    assert receipt.blobs == (digests["owned"],)
    assert receipt.removed_by[digests["owned"]] == ("made/a.c",)
    assert fsck(store, [bytes_in_archives]) == []


def test_a_file_that_no_build_collects_names_the_person_in_its_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"a.c": OWN, "AUTHORS": b"Ada Example\n", "LICENSE": b"MIT License, Ada Example"}
    store = Collected(tmp_path / "made", {"made": files, "other": {"NEWS": b"Ada Example", "b.c": SHARED}}).store
    code, shown = _withdraw_author("Ada Example", store, monkeypatch, capsys, "--erase", "--json")
    answer = json.loads(shown)

    assert (code, answer["by_source"], answer["others"]) == (0, {"made": 1}, {"made": 1, "other": 1})
    assert store.active_withdrawals() == [f"sha256:{OWN_SHA256}"]
    assert list(_received(store)) == []
    assert fsck(store) == []
