"""The catalog: its entries are not pinned, and bad entries are refused."""

from pathlib import Path

import pytest

import pipeline.pins
from pipeline.core.errors import PinError
from pipeline.pins.catalog import load_catalog
from pipeline.pins.pins import load_pins
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS

HEX = "a" * 64
PINS = Path(pipeline.pins.__file__).parent


def test_the_catalog_loads_and_lists_nothing_that_is_pinned() -> None:
    listed = {entry.name for entry in load_catalog(PINS / "catalog.toml")}
    assert "grpcio" in listed
    assert not listed & {pin.name for pin in load_pins(PINS / "operational.toml", SOURCE_KINDS)}


def test_a_catalog_entry_with_a_digest_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text(f'[[source]]\nname = "x"\nhomepage = "https://example.com"\nlicense = ""\nsha256 = "{HEX}"\n')
    with pytest.raises(PinError, match=r"x: `sha256` is not a known field.*pins file"):
        load_catalog(path)


def test_a_name_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text('[[source]]\nname = "x"\nhomepage = "https://example.com"\nlicense = ""\n' * 2)
    with pytest.raises(PinError, match="x: 2 entries have this name"):
        load_catalog(path)
