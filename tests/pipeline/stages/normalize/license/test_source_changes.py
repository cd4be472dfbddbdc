"""Changes of files: their licenses at their commits, their secrets, and which of them are copies of others."""

import shutil

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import CorpusParams
from pipeline.build.run_stage import run_stage
from pipeline.pins.held_out import HeldOut
from pipeline.stages.collect.kinds.git import GitPin
from pipeline.stages.collect.params import CollectParams
from pipeline.store.store import Store
from tests.pipeline.stages.normalize.conftest import Normalized
from tests.pipeline.stages.normalize.test_clean_source import TAG, code
from tests.support.git_repository import Repository, create
from tests.support.paths import MADE_CORPUS
from tests.support.planted_secrets import ALPHANUMERIC, characters

MIT = (MADE_CORPUS.parent / "lantern" / "LICENSE").read_text()
TOKEN = f"gh{'p_'}{characters(ALPHANUMERIC, 36)}"
PASSWORD = characters(ALPHANUMERIC, 9) + "!x7"
OPENED = f'const char* password = "{PASSWORD}";\n%svoid open_it(void) {{ call("{PASSWORD}"); }}\n'


def lines(name: str, first: int, number: int = 8) -> str:
    """Lines of code of one name, unlike those of any other number."""
    rows = range(first, first + number)
    return "".join(f"int {name}_{row}(int x{row}) {{ return x{row} * {row} + {name}{row}(x{row}); }}\n" for row in rows)


def _commit_one(one: Repository) -> dict[str, str]:
    """Commit what the tests are about; return the commits by what they are called there."""
    one.write("LICENSE", f"// {TAG} GPL-3.0-only\n".encode())
    begin = {name: code(name) for name in "ahmv"} | {"t": f"// {TAG} MIT\n{code('t')}", "p": OPENED % code("p")}
    one.commit("Begin", **{f"{name}__c": text for name, text in begin.items()})
    made = {"under another license": one.commit("Early", a__c=code("a") + lines("a", 100))}
    one.write("LICENSE", MIT.encode())
    made["under the license"] = one.commit(f"Use {TOKEN} here", a__c=code("a") + lines("a", 100) + lines("a", 200))
    made["of another license"] = one.commit("Tag", t__c=f"// {TAG} BSD-3-Clause\n" + code("t"))
    made["held out"] = one.commit("Held", h__c=code("h") + lines("h", 300))
    made["beside a password"] = one.commit("Call it later", p__c=OPENED % (code("p") + lines("p", 700)))
    made["first version"] = one.commit("First", v__c=code("v") + lines("v", 400))
    made["next version"] = one.commit("Next", v__c=code("v") + lines("v", 400).replace("x400", "y400"))
    made["equal"] = one.commit("Move m on", m__c=code("m") + lines("m", 500, 12))
    made["similar"] = one.commit("Move m further", m__c=code("m") + lines("m", 500, 12) + lines("m", 600, 30))
    return made


def _commit_two(two: Repository) -> dict[str, str]:
    """Commit the same changes, and similar ones, in another repository."""
    two.write("LICENSE", MIT.encode())
    two.commit("Begin two", n__c=code("m"), h__c=code("h"))
    made = {"equal": two.commit("The same, in other words", n__c=code("m") + lines("m", 500, 12))}
    more = lines("m", 600, 30).replace("x601", "y601")
    made["similar"] = two.commit("Like it", n__c=code("m") + lines("m", 500, 12) + more)
    made["held out"] = two.commit("A copy of what is held out", h__c=code("h") + lines("h", 300))
    return made


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Outcomes of all changes, and `texts`: all texts that are stored of them."""
    folder = tmp_path_factory.mktemp("changes")
    one, two = create(folder / "one"), create(folder / "two")
    names = {name: f"one/{commit}:" for name, commit in _commit_one(one).items()}
    names |= {f"{name} in two": f"two/{commit}:" for name, commit in _commit_two(two).items()}
    pins = tuple(
        GitPin(name=name, url=each.url, commit=each.git("rev-parse", "HEAD"), history=True, declared_license="MIT")
        for name, each in (("one", one), ("two", two))
    )
    corpus = CorpusParams(
        collect=CollectParams(with_changes=True),
        held_out=HeldOut(globs=("one/h.c",)),
    )
    with open_build(BuildRequest("made", corpus, pins, "a test"), Store(folder / "store")) as build:
        collected = run_stage("collect", build, None)
        made = Normalized(run_stage("normalize", build, collected.object_id), build.store)
    assert made.result.report.measures["num_exact_duplicates_left"] == 0
    assert [verdict.sentence for verdict in made.result.verdicts if not verdict.passed] == [], made.result.notes
    outcomes = made.outcomes()
    found = {
        name: next(outcome for path, outcome in outcomes.items() if path.startswith(place))
        for name, place in names.items()
    }
    rows = [row for part in ("one", "two") for row in made.rows(part, "documents.parquet")]
    splits = {row["split"] for row in rows if row["path"].endswith(":h.c")}
    shutil.rmtree(folder)
    return found | {"texts": "\n".join(row["text"] for row in rows), "splits of h.c": " ".join(sorted(splits))}


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ("under another license", "license_refused"),
        ("under the license", "kept"),
        ("of another license", "license_quarantined"),
        ("beside a password", "unscrubbable"),
        ("first version", "kept"),
        ("next version", "kept"),
        ("equal", "kept"),
        ("equal in two", "near_duplicate"),
        ("similar", "kept"),
        ("similar in two", "near_duplicate"),
        ("held out", "kept"),
        ("held out in two", "near_duplicate"),
    ],
)
def test_a_change_has_this_outcome(changed: dict[str, str], change: str, outcome: str) -> None:
    assert changed[change] == outcome


def test_no_secret_of_a_subject_or_of_a_line_without_its_context_is_stored(changed: dict[str, str]) -> None:
    assert "// commit: Use <redacted-secret-1> here" in changed["texts"]
    assert not any(secret in changed["texts"] for secret in (TOKEN, PASSWORD))


def test_the_changes_of_a_held_out_file_are_held_out(changed: dict[str, str]) -> None:
    assert "held_out" in changed["splits of h.c"]
