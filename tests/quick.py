"""Tests of `make quick`: those that start no process and train nothing, as each run of them proves.

`tests/conftest.py` takes the hooks from here. A test that is marked `quick` fails, in `make test` too, where it or a fixture that
is made for it starts a process, and so a compiler, or begins a training session.
"""

import multiprocessing.util
import platform
import sys
import threading
from collections.abc import Generator
from typing import Any

import pytest

NOT_QUICK = (
    "tests/assets/team/test_database.py",
    "tests/assets/test_alerts.py::test_an_alert_of_a_run",
    "tests/assets/test_alerts.py::test_an_alert_is_one_line",
    "tests/assets/test_alerts.py::test_an_alert_tells",
    "tests/assets/test_alerts.py::test_an_alert_whose_command",
    "tests/assets/test_definitions.py::test_definitions_load",
    "tests/assets/test_forms.py::test_every_field",
    "tests/assets/test_instance.py",
    "tests/assets/test_jobs.py",
    "tests/assets/test_live_snapshot.py",
    "tests/assets/test_resources.py::test_a_field_that_a_launch",
    "tests/assets/test_trainer_process.py",
    "tests/assets/test_training.py::test_terminate",
    "tests/assets/test_web.py::test_a_second_ui",
    "tests/assets/test_web.py::test_an_interrupt",
    "tests/deploy/test_team.py",
    "tests/faults",
    "tests/kernels/framework/test_operation.py",
    "tests/kernels/mamba3_scan/test_op.py::test_chunks_of_any",
    "tests/kernels/mamba3_scan/test_op.py::test_the_scan_compiles",
    "tests/kernels/measure",
    "tests/pipeline/build/canaries/test_canaries.py",
    "tests/pipeline/build/canaries/test_offenses.py",
    "tests/pipeline/build/engines/test_engine.py",
    "tests/pipeline/build/engines/test_local_engine.py",
    "tests/pipeline/build/engines/test_ray_engine.py",
    "tests/pipeline/build/made_corpus/test_made_corpus.py::test_the_bundle_holds",
    "tests/pipeline/build/oracles/drops/test_drop_rules.py::test_no_drop_of_any",
    "tests/pipeline/build/oracles/test_audited_licenses.py::test_a_drop_for_what",
    "tests/pipeline/build/test_audit.py::test_a_held_out_source",
    "tests/pipeline/build/test_build_context.py::test_a_detector_added",
    "tests/pipeline/build/test_build_context.py::test_a_detector_that_breaks",
    "tests/pipeline/build/test_consumer_proof.py::test_a_proof_that_names_no",
    "tests/pipeline/build/test_replay.py::test_a_snapshot_whose_pins",
    "tests/pipeline/cli/test_building.py",
    "tests/pipeline/cli/test_building_blocked.py",
    "tests/pipeline/cli/test_building_decisions.py",
    "tests/pipeline/cli/test_building_promotion.py",
    "tests/pipeline/cli/test_inspection.py::test_show_lists",
    "tests/pipeline/cli/test_maintenance.py::test_fsck_finds",
    "tests/pipeline/core/test_child_process.py",
    "tests/pipeline/core/test_command_line.py::test_a_reader_that_ends",
    "tests/pipeline/lexing/test_cpp.py::test_code_in_comments",
    "tests/pipeline/lexing/test_cpp.py::test_random_bytes",
    "tests/pipeline/lexing/test_cpp.py::test_tokens_comments",
    "tests/pipeline/lexing/test_cpp_blanked.py::test_any_heap",
    "tests/pipeline/lexing/test_jit.py",
    "tests/pipeline/lexing/test_languages.py::test_a_file_of_a_language",
    "tests/pipeline/lexing/test_languages.py::test_a_registered_language",
    "tests/pipeline/lexing/test_languages_registered.py",
    "tests/pipeline/lineage/test_made_anew.py::test_what_is_made_anew_for_each",
    "tests/pipeline/lineage/test_why.py::test_a_stage_before_collect",
    "tests/pipeline/pins/test_held_out.py::test_the_oracle",
    "tests/pipeline/removal/test_erased_archives.py",
    "tests/pipeline/removal/test_received_contents.py",
    "tests/pipeline/sandbox",
    "tests/pipeline/stages/collect/kinds/test_git.py",
    "tests/pipeline/stages/collect/kinds/test_sdist.py",
    "tests/pipeline/stages/collect/network",
    "tests/pipeline/stages/collect/repositories",
    "tests/pipeline/stages/collect/test_listing.py::test_a_commit_is_listed",
    "tests/pipeline/stages/collect/test_propose_pin.py::test_a_bundle_",
    "tests/pipeline/stages/collect/test_propose_pin.py::test_a_name_that",
    "tests/pipeline/stages/collect/test_propose_pin.py::test_a_repository_is",
    "tests/pipeline/stages/collect/test_stage.py",
    "tests/pipeline/stages/collect/test_update_pins.py",
    "tests/pipeline/stages/enrich/chunking/test_chunks.py::test_any_heap",
    "tests/pipeline/stages/enrich/chunking/test_chunks.py::test_hostile_text",
    "tests/pipeline/stages/enrich/chunking/test_chunks.py::test_mutated",
    "tests/pipeline/stages/enrich/chunking/test_chunks.py::test_real_files",
    "tests/pipeline/stages/enrich/chunking/test_sizes.py::test_a_sum_of_many",
    "tests/pipeline/stages/enrich/chunking/test_spans.py::test_chunks_are",
    "tests/pipeline/stages/enrich/compiler",
    "tests/pipeline/stages/enrich/syntax/test_grammar.py::test_a_million",
    "tests/pipeline/stages/enrich/test_stage.py",
    "tests/pipeline/stages/normalize/contamination/test_decontaminate.py",
    "tests/pipeline/stages/normalize/duplicates/partitions/test_links.py",
    "tests/pipeline/stages/normalize/duplicates/test_compare_sources.py",
    "tests/pipeline/stages/normalize/duplicates/test_copyleft.py",
    "tests/pipeline/stages/normalize/encodings/test_legacy_encodings.py::test_little_is_kept",
    "tests/pipeline/stages/normalize/encodings/test_legacy_encodings.py::test_most_sound",
    "tests/pipeline/stages/normalize/encodings/test_legacy_encodings.py::test_nearly_no_wrong_text",
    "tests/pipeline/stages/normalize/encodings/test_misread_text.py::test_the_time",
    "tests/pipeline/stages/normalize/filters/test_code_shapes.py::test_nine_of_ten",
    "tests/pipeline/stages/normalize/filters/test_code_shapes.py::test_of_good_files",
    "tests/pipeline/stages/normalize/license/licensors/test_licensor_sentences.py::test_limits_in_any",
    "tests/pipeline/stages/normalize/license/test_read_comments.py::test_a_restriction_is_not",
    "tests/pipeline/stages/normalize/license/test_read_comments.py::test_an_identifier_is_the_license",
    "tests/pipeline/stages/normalize/license/test_source_changes.py",
    "tests/pipeline/stages/normalize/scrub/secrets/test_tool_secrets.py",
    "tests/pipeline/stages/normalize/scrub/test_scrub.py::test_scrubbing_twice",
    "tests/pipeline/stages/normalize/scrub/test_scrub.py::test_the_time",
    "tests/pipeline/stages/normalize/test_decided_files.py",
    "tests/pipeline/stages/tokenize/rows/test_pack.py::test_every_token",
    "tests/pipeline/stages/tokenize/rows/test_pack.py::test_the_order",
    "tests/pipeline/stages/tokenize/test_vocabulary.py::test_training_gives",
    "tests/pipeline/stages/verify/test_consumer.py::test_every_file",
    "tests/pipeline/stages/verify/test_consumer.py::test_every_library",
    "tests/pipeline/stages/verify/test_smoke.py",
    "tests/pipeline/storage/test_bucket.py",
    "tests/pipeline/storage/test_bucket_client.py",
    "tests/pipeline/storage/test_leases.py",
    "tests/pipeline/storage/test_open_storage.py",
    "tests/pipeline/storage/test_shared_logs.py",
    "tests/pipeline/store/test_locks.py::test_a_killed_writer",
    "tests/pipeline/store/test_objects.py::test_racing",
    "tests/pipeline/store/test_refs.py::test_a_move_is_in_the_history",
    "tests/pipeline/store/test_refs.py::test_a_reader_beside",
    "tests/pipeline/store/test_refs.py::test_a_ref_that_is_being",
    "tests/pipeline/store/test_refs.py::test_racing",
    "tests/support",
    "tests/test_allowed_skips.py",
    "tests/test_architecture.py::test_an_old_python",
    "tests/test_architecture.py::test_a_heavy_import",
    "tests/test_expressions.py",
    "tests/test_golden.py",
    "tests/test_renames.py::test_names_are_read",
    "tests/test_rooms.py::test_docstrings_begin_with_a_noun_or_an_imperative_verb[tests]",
    "tests/tools",
    "tests/trainer/bench",
    "tests/trainer/checkpoint/test_initial_weights.py",
    "tests/trainer/compile",
    "tests/trainer/data/test_batch.py::test_any_division",
    "tests/trainer/data/test_keyed_hash.py::test_it_is_a_bijection",
    "tests/trainer/data/test_loader_division.py",
    "tests/trainer/data/test_mixture.py::test_every_prefix",
    "tests/trainer/data/test_mixture.py::test_quotas_are",
    "tests/trainer/data/test_prefetch.py",
    "tests/trainer/distributed/test_ranks.py::test_a_meeting_place",
    "tests/trainer/distributed/test_torchrun.py",
    "tests/trainer/inference",
    "tests/trainer/model",
    "tests/trainer/proof",
    "tests/trainer/test_main.py::test_an_interrupt_ends",
    "tests/trainer/test_main.py::test_the_parser_loads",
    "tests/trainer/train",
)
"""Files, folders and tests that start processes, compile, train or judge by thousands of texts: `make quick` leaves them out."""
_BUILT = {"tiny_results", "tiny_store", "rebuilt_store", "blocked_store"}
_PROCESS_EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}
_SESSION_LOCK = "/.lock"
"""End of the path that `hold_folder` of trainer/train/metrics.py opens, to be locked, when a training session begins."""
_current: list[str] = []
"""The quick test that runs, if one does."""
_older_threads: set[int] = set()
"""Threads that earlier tests have left: what these start is not of the test that runs."""
_started: list[str] = []
"""Sentences about what it has started."""


def is_quick(item: pytest.Item) -> bool:
    """Return whether a test is one of `make quick`."""
    place = f"{item.path.relative_to(item.config.rootpath).as_posix()}::{item.name}"
    if any(item.get_closest_marker(name) for name in ("slow", "gpu", "net", "campaign")) or place.startswith(NOT_QUICK):
        return False
    return not _BUILT & set(getattr(item, "fixturenames", ()))


def pytest_sessionstart() -> None:
    """Watch this process. An audit hook stays until the process ends, and sees every thread."""
    platform.processor()  # starts a process at its first use, whoever that is, and remembers the answer
    spawn = multiprocessing.util.spawnv_passfds  # type: ignore[attr-defined]

    def audited_spawn(path: bytes, args: list[bytes], passfds: tuple[int, ...]) -> int:
        sys.audit("os.posix_spawn", path, args, {})  # as the interpreter raises no event for it
        pid: int = spawn(path, args, passfds)
        return pid

    multiprocessing.util.spawnv_passfds = audited_spawn  # type: ignore[attr-defined]
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise the failure of the quick test that runs, before anything is started for it."""
    if not _current or threading.get_ident() in _older_threads:
        return
    if event in _PROCESS_EVENTS:
        what = f"starts a process ({event}: {str(arguments[:2])[:200]})"
    elif event == "open" and arguments[1] == "a+" and str(arguments[0]).endswith(_SESSION_LOCK):
        what = "begins a training session"
    else:
        return
    _started.append(f"{_current[0]} {what}, and is marked quick: name it in NOT_QUICK of tests/quick.py")
    pytest.fail(_started[0], pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Let no fixture of a quick test start anything."""
    yield from _watched(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Let no quick test start anything."""
    yield from _watched(item)


def _watched(item: pytest.Item) -> Generator[None, None, None]:
    """Run a phase of a test. What a thread or a caught exception has hidden fails it too."""
    if not item.get_closest_marker("quick"):
        return (yield)
    current, started = _current, _started  # tests of this file put others in their place
    _older_threads.clear()
    _older_threads.update(
        each.ident for each in threading.enumerate() if each.ident and each is not threading.current_thread()
    )
    current.append(item.nodeid)
    started.clear()
    try:
        result = yield
    finally:
        current.clear()
    if started:
        pytest.fail(started[0], pytrace=False)
    return result
