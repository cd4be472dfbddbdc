"""Mutations of each gate, by one rule over GATES: a new gate gets them by itself.

offense     the offense that the gate is there for                       the gate goes red
measure     the same, and every report says a passing value              its canary goes red
verdict     the gate always says that it passed                          its canary goes red
stored      a byte that the gate judged is altered afterwards            promotion refuses
forged      the rows are altered afterwards, with digests that fit       promotion refuses
thinned     a quarter of its stage's input is lost                       the loss goes red
first       the measure reads the first row of each table alone          its own canary goes red
source      the measure reads the first source alone                     its own canary goes red
"""

from collections.abc import Callable, Iterator
from functools import partial

from pipeline.contracts.gates import GATES, Gate
from tests.faults.injected_faults import flip
from tests.mutations import plant
from tests.mutations.bench import Bench
from tests.mutations.judges.first_only import judge_first_row, judge_first_source
from tests.mutations.mutation import Kind, Mutation
from tests.mutations.offenses.gate_offenses import PART, lose, offend
from tests.mutations.offenses.row_offenses import OF_ROWS
from tests.mutations.stored import files_judged, forge_rows

SEEN = ("canary:*", "unseen:*", "gate:canaries_are_caught", "gate:every_gate_was_seen_red")
"""Signals of a gate that no canary of its own has turned red in the build."""
FIRST_ONLY = {"first": (judge_first_row, "first row"), "source": (judge_first_source, "first source")}
LOST = ("gate:no_row_lost_*", "gate:*conserv*", "gate:*accounted*")


def mutations() -> Iterator[Mutation]:
    """Return the mutations of every gate."""
    for gate in GATES:
        where = f"{gate.stage}: {gate.name}"
        yield Mutation(
            f"{gate.name}/offense", Kind.STAGE, f"offense of {where}", (f"gate:{gate.name}",), partial(_offense, gate)
        )
        yield Mutation(
            f"{gate.name}/measure",
            Kind.STAGE,
            f"{gate.measure} is always {gate.limit.passing:g}, with the offense of {where}",
            SEEN,
            partial(_measure, gate),
        )
        yield Mutation(
            f"{gate.name}/verdict", Kind.STAGE, f"verdict of {where} is always passed", SEEN, partial(_verdict, gate)
        )
        yield Mutation(
            f"{gate.name}/stored",
            Kind.STORED,
            f"a byte judged by {where} flipped",
            ("promote",),
            partial(_stored, gate),
        )
        if gate.name in OF_ROWS:
            planted = f"rows judged by {where} changed, with digests that fit"
            yield Mutation(f"{gate.name}/forged", Kind.STORED, planted, ("promote",), partial(_forged, gate))
        yield Mutation(
            f"{gate.name}/thinned",
            Kind.STAGE,
            f"a quarter of the input of {gate.stage} lost, another one for each gate",
            (*LOST, f"gate:{gate.name}"),
            partial(_thinned, gate),
        )
        of_gate = (f"canary:{gate.name}/*", f"unseen:{gate.name}")
        for rule, (judge, what) in FIRST_ONLY.items():
            planted = f"{gate.measure} of {where} judges the {what} alone"
            yield Mutation(f"{gate.name}/{rule}", Kind.STAGE, planted, of_gate, partial(_first_only, judge, gate))


def _offense(gate: Gate, bench: Bench) -> None:
    offend(gate.name, bench)
    bench.build()


def _measure(gate: Gate, bench: Bench) -> None:
    plant.hold_measure(gate)
    offend(gate.name, bench)
    bench.build()
    bench.send_canaries()


def _verdict(gate: Gate, bench: Bench) -> None:
    plant.pass_always(gate)
    bench.build()


def _stored(gate: Gate, bench: Bench) -> None:
    """Flip a byte of one of the files that the gate's stage judged: another file for each gate."""
    files = files_judged(bench, gate.stage)
    number = [each.name for each in GATES if each.stage == gate.stage].index(gate.name)
    flip(files[number * 7 % len(files)])
    bench.promote(bench.live_id)


def _forged(gate: Gate, bench: Bench) -> None:
    bench.promote(forge_rows(bench, OF_ROWS[gate.name]))


def _first_only(judge: Callable[[Gate], None], gate: Gate, bench: Bench) -> None:
    judge(gate)
    bench.send_canaries()


def _thinned(gate: Gate, bench: Bench) -> None:
    assert gate.stage in PART
    lose(gate.stage, bench, gate.name)
    bench.build()
