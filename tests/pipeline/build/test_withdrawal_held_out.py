"""A rule of what is held out over what is withdrawn: the build goes on, and says which glob names nothing that is left."""

from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY
from pipeline.build.run_stage import run_stages
from pipeline.build.withdrawal import withdraw
from pipeline.core.digests import text_sha256
from pipeline.pins.held_out import HeldOut
from tests.pipeline.removal.conftest import FILES_OF, SHARED, Collected


@pytest.mark.parametrize("withdrawn", ["made/b.c", f"sha256:{text_sha256(SHARED.decode())}", "made"])
def test_a_withdrawn_file_that_a_glob_held_out_stops_no_build(tmp_path: Path, withdrawn: str) -> None:
    other = {"d.c": b"int d(void) { return 43; }\n", "e.c": b"int e(void) { return 44; }\n"}
    made = Collected(tmp_path / "made", {"made": FILES_OF["made"], "other": other}, declared_license="MIT")
    held_out = HeldOut(globs=("made/b.c", "**/a.c", "other/e.c"))
    params = TINY.params.model_copy(update={"held_out": held_out})
    withdraw(made.store, withdrawn, "asked")
    with open_build(BuildRequest("made", params, made.pins, "a test"), made.store) as build:
        collected, *_ = run_stages(build, "normalize")
    assert not collected.blocked
    idle = ["**/a.c", "made/b.c"] if withdrawn == "made" else ["made/b.c"]
    told = [each for each in collected.warnings if each.startswith("held_out: ")]
    assert [each.split(" ")[1] for each in told] == [repr(glob) for glob in idle]
