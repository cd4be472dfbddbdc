"""Build blocks of pins: the values that are refused."""

from pathlib import Path

import pytest

from pipeline.core.errors import PinError
from pipeline.pins.pins import load_pins
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("", "`database` or `cmake = true`"),
        ('database = "a.json"\ncmake = true', "and not both"),
        ('database = "/etc/passwd"', "path inside the source"),
        ('database = "../a.json"', "path inside the source"),
        ('database = "a.json"\noptions = ["-DX=1"]', "together with `cmake = true`"),
        ('cmake = true\noptions = ["-P", "run.cmake"]', "-DNAME=VALUE"),
        ('cmake = true\noptions = ["--graphviz=/x"]', "-DNAME=VALUE"),
        ("cmake = true\nmax_units = 0", "max_units"),
        ("cmake = true\nshell = 1", "shell"),
    ],
)
def test_a_build_block_that_makes_no_sense_is_refused(block: str, message: str, tmp_path: Path) -> None:
    pins = tmp_path / "pins.toml"
    entry = f'[[pin]]\nname = "made"\nkind = "archive"\npath = "a.tar"\nsha256 = "{"0" * 64}"\n[pin.build]\n{block}\n'
    pins.write_text(entry)
    with pytest.raises(PinError) as caught:
        load_pins(pins, SOURCE_KINDS)
    assert message in str(caught.value)
