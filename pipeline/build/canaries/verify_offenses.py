"""Offenses for the gates of verify: of tokens, of rows, and of answers that are not what they should be."""

import json
from collections.abc import Callable
from typing import Any

from pipeline.build.canaries.offense import NUM_PLACES, Offense, answered, file_changed, of_part
from pipeline.build.canaries.verify_row_offenses import VERIFY_ROW_OFFENSES
from pipeline.build.canaries.verify_token_offenses import VERIFY_TOKEN_OFFENSES
from pipeline.contracts.gates_seen import CANARIES, GATES_SEEN
from pipeline.stages.verify.smoke import ROWS_OF_CHECKS


def _answer(
    name: str, gate: str, part: str, change: Callable[[dict[str, Any]], dict[str, Any]], least: int = NUM_PLACES
) -> Offense:
    """Return the offense of another answer of the consumer."""
    return of_part(name, [gate], ("verify", part), answered(change), least=least)


def _stale(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "snapshot_id": "0" * 64}


def _not_finite(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of which the first and the last loss are no finite numbers."""
    return {**answer, "losses": [float("nan"), *answer["losses"][1:-1], float("inf")]}


def _differing(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of which the first and the last check differ by a row."""
    first, *between, last = answer["checks"]
    return {**answer, "checks": [{**first, "num_differing": 1}, *between, {**last, "num_differing": 1}]}


def _of_one_row(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer whose checks compared one row each."""
    return {**answer, "checks": [{**check, "num_compared": 1} for check in answer["checks"]]}


def _canaries(name: str, gate: str, file: str, change: Callable[[Any], Any], least: int) -> Offense:
    """Return the offense of other results of canaries."""
    alter = file_changed(file, lambda content: json.dumps(change(json.loads(content))).encode())
    return of_part(name, [gate], ("verify", "canaries"), alter, least=least)


def _missed(caught: dict[str, bool]) -> dict[str, bool]:
    """Return results of which the first and the last say that a canary was missed."""
    first, *_, last = sorted(caught)
    return caught | {first: False, last: False}


def _of_other_kinds(caught: dict[str, bool]) -> dict[str, bool]:
    """Return results without those of archives."""
    return {name: seen for name, seen in caught.items() if "/" in name}


def _unseen(seen: dict[str, Any]) -> dict[str, Any]:
    """Return results by which no offense turned the first and the last gate red."""
    first, *_, last = seen["gates"]
    return {**seen, "gates": {**seen["gates"], first: [], last: []}}


_ANSWER_OFFENSES = (
    _answer("stale_smoke", "trainer_takes_a_step", "smoke", _stale),
    _answer("no_step", "trainer_takes_a_step", "smoke", lambda answer: {**answer, "losses": []}),
    _answer("loss_that_is_not_a_number", "trainer_loss_is_finite", "smoke", _not_finite, least=2),
    _answer("stale_checks_of_the_loader", "loader_was_checked", "loader", _stale, sum(ROWS_OF_CHECKS)),
    _answer(
        "checks_of_one_row",
        "loader_was_checked",
        "loader",
        _of_one_row,
        sum(ROWS_OF_CHECKS) - len(ROWS_OF_CHECKS),
    ),
    _answer(
        "one_check_alone",
        "loader_was_checked",
        "loader",
        lambda answer: {**answer, "checks": answer["checks"][:1]},
        sum(ROWS_OF_CHECKS[1:]),
    ),
    _answer("loader_in_another_order", "loader_repeats_itself", "loader", _differing, least=2),
    _canaries("canary_that_was_missed", "canaries_are_caught", CANARIES, _missed, 2),
    _canaries("no_canary", "canaries_were_sent", CANARIES, lambda _: {}, NUM_PLACES),
    _canaries("no_canary_of_a_kind", "canaries_were_sent", CANARIES, _of_other_kinds, NUM_PLACES),
    _canaries("gate_never_seen_red", "every_gate_was_seen_red", GATES_SEEN, _unseen, 2),
)

VERIFY_OFFENSES = (*VERIFY_TOKEN_OFFENSES, *VERIFY_ROW_OFFENSES, *_ANSWER_OFFENSES)
