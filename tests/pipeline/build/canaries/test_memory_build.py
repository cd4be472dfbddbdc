"""A build in memory ends as one in a store does, and an alteration is seen by what reads it and by nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.canaries.canaries import sound_build
from pipeline.build.canaries.memory_build import NO_CHANGES, Alteration, Changes, MemoryBuild
from pipeline.build.canaries.offense import altered, table_changed
from pipeline.build.canaries.sound_sources import SOUND
from pipeline.build.recipes import TINY
from pipeline.build.run_stage import run_stages
from pipeline.core.errors import StageError
from pipeline.core.table_names import ENRICHED, TOKENS
from pipeline.stages.stages import STAGES
from pipeline.stages.verify.stage import USAGE
from pipeline.store.store import Store


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> MemoryBuild:
    build = sound_build(tmp_path_factory.mktemp("sound") / "sources", TINY.params)
    build.run()
    return build


def test_its_parts_hold_what_a_build_in_a_store_holds(built: MemoryBuild, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    with open_build(BuildRequest("sound", built.params, tuple(built.pins), "a test"), store) as build:
        results = list(run_stages(build, until="tokenize"))

    for result in results:
        in_memory = built.stages[result.stage]
        assert in_memory.output.report == result.report
        for name, object_id in result.parts.items():
            stored, made = store.read(object_id), built.objects[in_memory.inputs[f"part/{name}"]]
            assert made.kind == stored.manifest.kind
            for table in made.output.tables:
                assert made.table(table).equals(stored.table(table)), (result.stage, name, table)


def test_no_changes_give_the_verdicts_of_the_sound_build(built: MemoryBuild) -> None:
    for stage in STAGES.names:
        assert all(verdict.passed or not verdict.blocking for verdict in built.verdicts(stage, NO_CHANGES).values())


def test_an_altered_part_is_read_by_later_stages_and_the_sound_build_is_left_as_it_is(built: MemoryBuild) -> None:
    before = {name: stored.object_id for name, stored in built.objects.items()}
    changes = altered("enrich", table_changed(ENRICHED, lambda table: table.slice(1)))

    assert not built.verdicts("enrich", changes)["no_row_lost_in_enrich"].passed
    assert not built.verdicts("verify", changes)["round_trip_is_exact"].passed
    assert built.verdicts("collect", changes)["no_row_lost_in_collect"].passed
    assert built.verdicts("verify", NO_CHANGES)["round_trip_is_exact"].passed
    assert before.items() <= {name: stored.object_id for name, stored in built.objects.items()}.items()


def test_an_altered_job_is_what_the_part_function_gets(built: MemoryBuild) -> None:
    names: list[str] = []
    changes = Changes((Alteration("verify", SOUND, job=lambda job: names.append(job.name) or replace(job)),))

    assert built.verdicts("verify", changes)["round_trip_is_exact"].passed
    assert names == [SOUND]


def test_a_count_of_ids_that_is_a_row_short_is_refused_by_its_name(built: MemoryBuild) -> None:
    with pytest.raises(StageError, match=f"{USAGE} of {SOUND}: 1023 rows; expected 1024"):
        built.verdicts("verify", altered("verify", table_changed(USAGE, lambda table: table.slice(1))))


def test_a_report_can_be_altered_after_it_was_measured(built: MemoryBuild) -> None:
    changes = Changes(
        (
            Alteration(
                "verify",
                SOUND,
                report=lambda report: replace(report, measures=report.measures | {"num_documents": 99}),
            ),
        )
    )
    sound, altered_verdict = (
        built.verdicts("verify", each)["documents_were_decoded"] for each in (NO_CHANGES, changes)
    )

    assert altered_verdict.measured == sound.measured // 2 + 99


def test_a_file_has_a_path_and_a_column_can_be_read_alone(built: MemoryBuild) -> None:
    stored = built.objects[built.stages["tokenize"].inputs[f"part/{SOUND}"]]

    assert stored.file("report.json").read_bytes().startswith(b"{")
    assert stored.json("report.json")["rows_out"] == stored.table(TOKENS, ["path"]).num_rows
    assert stored.table(TOKENS, ["path"]).column_names == ["path"]
