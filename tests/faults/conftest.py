"""Fixtures of the folders whose code is tested with faults here, and the collection of bad inputs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.core.errors import PinError, SluiceError
from pipeline.pins.pins import load_pins
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.params import RetryPolicy
from pipeline.stages.collect.stage import run
from tests.pipeline.conftest import sandbox
from tests.pipeline.stages.collect.conftest import Create, Index, delays, index, retry, surroundings, tar_gz
from tests.support.made.made_bad_archives import SOUND, tar
from tests.support.made.made_bad_inputs import BadInputs

__all__ = ["delays", "index", "retry", "sandbox", "surroundings", "tar_gz"]

Make = Callable[[BadInputs], str]


def check_refusal(error: SluiceError, kind: type[SluiceError], message: str) -> None:
    """Check that a bad input is refused by its kind of error, in words, and with what to do."""
    assert type(error) is kind
    assert message in str(error)
    assert error.remedy


@pytest.fixture
def refusal(surroundings: Create, index: Index, retry: RetryPolicy, tmp_path: Path) -> Callable[[Make], SluiceError]:
    """The error of a bad input, which is collected together with a sound source."""

    def refuse(make: Make) -> SluiceError:
        inputs = BadInputs(tmp_path, index)
        entries = {"bad": make(inputs), "sound": inputs.archive(tar(SOUND), "sound.tar")}
        pins = tmp_path / "pins.toml"
        pins.write_text("\n".join(f'[[pin]]\nname = "{name}"\n{entry}\n' for name, entry in entries.items()))
        try:
            loaded = load_pins(pins, SOURCE_KINDS)
        except PinError as error:
            return error
        output = run(surroundings(*loaded), replace(retry, num_attempts=2, max_num_bytes=100_000))
        assert set(output.parts) == {"sound"}
        return output.failures["bad"]

    return refuse


@pytest.fixture
def collected(
    surroundings: Create, index: Index, retry: RetryPolicy, tmp_path: Path
) -> Callable[[Make], tuple[list[str], dict[str, str]]]:
    """The paths of the files of an odd input, and the reasons of its drops by path."""

    def collect(make: Make) -> tuple[list[str], dict[str, str]]:
        pins = tmp_path / "pins.toml"
        pins.write_text(f'[[pin]]\nname = "odd"\n{make(BadInputs(tmp_path, index))}\n')
        context = surroundings(*load_pins(pins, SOURCE_KINDS))
        assert run(context, retry).failures == {}
        tables = context.made["odd"].tables
        drops = {row["path"]: row["reason"] for row in tables["dropped.parquet"].to_pylist()}
        return sorted(tables["files.parquet"]["path"].to_pylist()), drops

    return collect
