"""A source kind is declared once: registered at run time, it is loaded, collected, proposed and named in error messages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from pipeline.cli.main import main
from pipeline.contracts.part import PartJob
from pipeline.core.digests import file_sha256
from pipeline.core.errors import ParamsError, PinError
from pipeline.pins.pins import Sha256, SourcePin, load_pins
from pipeline.stages.collect.contents import ReadFile, ReadOptions, SourceContents
from pipeline.stages.collect.kinds.source_kind import Fetcher, SourceKind
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.propose_pin import propose_local
from pipeline.stages.collect.stage import run
from pipeline.store.store import Store
from tests.pipeline.stages.collect.conftest import Create


class SnippetPin(SourcePin):
    """One C file."""

    kind: Literal["snippet"] = "snippet"
    path: Path
    sha256: Sha256

    locator_fields: ClassVar[frozenset[str]] = frozenset({"path"})
    revision_field: ClassVar[str] = "sha256"


def fetch(pin: SnippetPin, fetcher: Fetcher) -> Path:
    return fetcher.context.put_blob([pin.path.read_bytes()], pin.sha256, pin.name)


def read(job: PartJob, path: Path, options: ReadOptions) -> SourceContents:
    return SourceContents((ReadFile(f"{options.source}.c", path.read_bytes()),), ())


def propose(path: Path) -> dict[str, str] | None:
    return {"path": str(path), "sha256": file_sha256(path)} if path.suffix == ".snippet" else None


@pytest.fixture
def snippet_kind() -> Iterator[None]:
    with SOURCE_KINDS.registered(SourceKind(SnippetPin, fetch, read, propose)):
        yield


@pytest.fixture
def pins(tmp_path: Path) -> Path:
    """A pins file with one snippet, printed by `pin`."""
    (tmp_path / "mine.snippet").write_bytes(b"int a;\n")
    sha256 = file_sha256(tmp_path / "mine.snippet")
    (tmp_path / "pins.toml").write_text(
        f'[[pin]]\nname = "mine"\nkind = "snippet"\npath = "mine.snippet"\nsha256 = "{sha256}"\n'
    )
    return tmp_path / "pins.toml"


@pytest.mark.usefixtures("snippet_kind")
def test_a_kind_registered_at_run_time_is_loaded_and_collected(surroundings: Create, pins: Path) -> None:
    (pin,) = load_pins(pins, SOURCE_KINDS)
    context = surroundings(pin)
    output = run(context)

    assert isinstance(pin, SnippetPin)
    assert output.failures == {}
    (row,) = context.made["mine"].tables["files.parquet"].to_pylist()
    assert (row["path"], row["content"], row["revision"]) == ("mine.c", b"int a;\n", pin.sha256)


@pytest.mark.usefixtures("snippet_kind")
def test_a_kind_registered_at_run_time_is_proposed_and_built_by_the_command_line(
    tmp_path: Path, pins: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pin", "mine", str(tmp_path / "mine.snippet"), "--store", str(tmp_path / "store")]) == 0
    pins.write_text(capsys.readouterr().out)
    assert 'kind = "snippet"' in pins.read_text()
    command = ["build", "--recipe", "tiny", "--corpus", "mine", "--pins", str(pins), "--workers", "1"]
    assert main([*command, "--until", "collect", "--store", str(tmp_path / "store")]) == 0
    assert Store(tmp_path / "store").ref("mine", "collect") is not None


def test_an_unknown_kind_is_refused_with_those_that_are_registered(pins: Path) -> None:
    names = ", ".join(SOURCE_KINDS.names)
    with pytest.raises(PinError, match=rf"kind is 'snippet'; expected one of {names}\."):
        load_pins(pins, SOURCE_KINDS)
    pins.write_text(pins.read_text().replace('"snippet"', '"svn"'))
    with (
        SOURCE_KINDS.registered(SourceKind(SnippetPin, fetch, read)),
        pytest.raises(PinError, match=rf"kind is 'svn'; expected one of {names}, snippet\."),
    ):
        load_pins(pins, SOURCE_KINDS)


@pytest.mark.parametrize("kind", ["3", "[]", '["sdist"]', "true"])
def test_a_kind_that_is_not_text_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "pins.toml").write_text(f'[[pin]]\nname = "mine"\nkind = {kind}\n')
    with pytest.raises(PinError, match="expected one of sdist, archive"):
        load_pins(tmp_path / "pins.toml", SOURCE_KINDS)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fetch": lambda pin, fetcher: None}, "fetch gives None; expected Path"),
        ({"read": lambda *_: None}, "read gives None; expected SourceContents"),
        ({"read": lambda *_: SourceContents(None, ())}, "read gives None; expected tuple"),  # type: ignore[arg-type]
        ({"read": lambda *_: SourceContents(("a.c",), ())}, "read gives str; expected ReadFile"),  # type: ignore[arg-type]
        ({"read": lambda *_: SourceContents((ReadFile("a.c", "int"),), ())}, "read gives str; expected bytes"),  # type: ignore[arg-type]
        ({"read": lambda *_: SourceContents((), (None,))}, "read gives None; expected SkippedFile"),  # type: ignore[arg-type]
        ({"listing": lambda pin, path, num_bytes: None}, "listing gives None; expected Iterable"),
        ({"listing": lambda pin, path, num_bytes: ["mine.c"]}, "listing gives str; expected ListedName"),
        ({"propose": lambda path: [path]}, "propose gives list; expected dict"),
    ],
)
def test_what_a_kind_returns_in_another_type_is_refused_by_its_name_and_function(
    surroundings: Create, pins: Path, wrong: dict[str, Any], message: str
) -> None:
    def propose_and_collect() -> None:
        propose_local("mine", pins.parent / "mine.snippet", "MIT")
        run(surroundings(*load_pins(pins, SOURCE_KINDS)))

    kind = SourceKind(SnippetPin, **{"fetch": fetch, "read": read, "propose": propose, **wrong})
    with SOURCE_KINDS.registered(kind), pytest.raises(ParamsError, match=f"^source kind snippet: its {message}"):
        propose_and_collect()


def test_an_origin_of_another_type_is_refused_by_its_kind() -> None:
    with pytest.raises(ParamsError, match="source kind snippet: its origin gives str; expected Origin"):
        SourceKind(SnippetPin, fetch, read, origin=lambda pin: "here").origin_of({})  # type: ignore[arg-type,return-value]
