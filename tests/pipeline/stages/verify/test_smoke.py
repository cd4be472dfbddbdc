"""A trainer that crashes, hangs or answers something else stops the stage; one that answers is measured."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.contracts.part import PartJob, PartOutput
from pipeline.core.errors import StageError
from pipeline.stages.verify.params import VerifyParams
from pipeline.stages.verify.smoke import (
    NUM_LOADER_ROWS,
    ROWS_OF_CHECKS,
    measure_loader,
    measure_smoke,
    run_loader_checks,
    run_smoke,
)

CANDIDATE = "a" * 64


@pytest.fixture
def job(tmp_path: Path) -> PartJob:
    params = VerifyParams.model_construct(smoke_timeout_seconds=5)
    inputs: dict[str, Any] = {"snapshot": SimpleNamespace(object_id=CANDIDATE)}
    return PartJob("smoke", params, inputs, {}, {"store": tmp_path})


@pytest.fixture
def trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for the trainer with a shell script, which each test writes."""
    program = tmp_path / "trainer.sh"
    monkeypatch.setattr(sys, "executable", str(program))
    return program


def write(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_losses_and_checks_are_measures(trainer: Path, job: PartJob) -> None:
    write(
        trainer,
        f"""echo '{{"losses": [2.5, NaN, true], "checks": [{{"num_compared": 4, "num_differing": 0}},
        {{"num_compared": 0, "num_differing": 0}}, {{"num_compared": 4, "num_differing": 3}}],
        "snapshot_id": "{CANDIDATE}"}}'; echo "$@" >> {trainer}.lines; [ $3 = smoke ]""",
    )
    smoke, loader = measure_smoke(job, run_smoke(job)), measure_loader(job, run_loader_checks(job))

    assert smoke.measures == {"num_smoke_steps": 3, "num_non_finite_losses": 2}
    assert loader.measures == {
        "num_loader_rows_not_compared": sum(ROWS_OF_CHECKS) - 8,
        "num_loader_differences": 3,
    }
    of_candidate = f"--store={job.places['store']} --snapshot {CANDIDATE} --json"
    assert Path(f"{trainer}.lines").read_text().splitlines() == [
        f"-m trainer smoke {of_candidate}",
        f"-m trainer verify-loader {of_candidate} --steps 0 --rows {NUM_LOADER_ROWS}",
    ]


def test_an_answer_about_another_snapshot_counts_as_none(job: PartJob) -> None:
    answer = {"losses": [2.5], "checks": [{"num_compared": 1, "num_differing": 0}], "snapshot_id": "b" * 64}

    assert measure_smoke(job, PartOutput({}, answer=answer)).measures["num_smoke_steps"] == 0
    assert measure_loader(job, PartOutput({}, answer=answer)).measures["num_loader_rows_not_compared"] == sum(
        ROWS_OF_CHECKS
    )


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("echo one >&2; echo two >&2; exit 3", "exit 3: two"),
        ("exit 1", "exit 1: it printed nothing"),
        ("kill -9 $$", "ended by SIGKILL, perhaps for lack of memory: it printed nothing"),
        ("echo one >&2; kill -TERM $$", "ended by SIGTERM: one"),
        ("exit 1", f"`python -m trainer smoke --snapshot {CANDIDATE}`"),
        ("echo hello", "its answer is 'hello"),
        ("echo '[1]'", "its answer is '[1]"),
        ("echo '{}'", "its answer is '{}"),
    ],
)
def test_a_trainer_that_gives_no_losses_is_an_error(script: str, found: str, trainer: Path, job: PartJob) -> None:
    write(trainer, script)

    with pytest.raises(StageError) as raised:
        run_smoke(job)
    assert "consumer smoke run" in str(raised.value)
    assert found in str(raised.value)


@pytest.mark.parametrize("count", ["-3", "null", "true", "NaN", '"0"'])
def test_a_check_that_does_not_count_is_an_error(count: str, trainer: Path, job: PartJob) -> None:
    """Added to others, -3 would hide three rows that differ."""
    write(trainer, f"""echo '{{"checks": [{{"num_compared": 4, "num_differing": {count}}}]}}'""")

    with pytest.raises(StageError, match="its answer is"):
        run_loader_checks(job)


def test_a_trainer_that_hangs_is_ended(trainer: Path, job: PartJob) -> None:
    write(trainer, "exec sleep 60")
    job = replace(job, params=VerifyParams.model_construct(smoke_timeout_seconds=0.2))

    with pytest.raises(StageError, match=r"no answer within 0\.2 s"):
        run_smoke(job)
