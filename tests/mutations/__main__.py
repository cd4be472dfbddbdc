"""`python -m tests.mutations [NAME ...] [--list] [--kind KIND] [--json] [--write FILE]`: plant faults, print what saw them."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from tests.mutations import controls, of_gates, of_kernels, of_store, of_trainer
from tests.mutations.campaign import Campaign
from tests.mutations.inputs import of_cases, of_inputs
from tests.mutations.judges import of_audits, of_checks, of_promotion
from tests.mutations.mutation import Kind, Mutation, Outcome, Status
from tests.support.mutations_page import signals, updated_page
from tests.support.paths import ROOT

STATE = ROOT / "build" / "mutations.json"


def mutations() -> list[Mutation]:
    """Return every mutation, the controls last."""
    modules = (
        of_gates,
        of_audits,
        of_checks,
        of_promotion,
        of_store,
        of_inputs,
        of_cases,
        of_trainer,
        of_kernels,
        controls,
    )
    return [mutation for module in modules for mutation in module.mutations()]


def main() -> int:
    """Run the campaign; exit 1 if a fault survived or a control did not."""
    options = _parse()
    chosen = [each for each in mutations() if _is_chosen(each, options)]
    if not chosen:
        print("no mutation of that name; --list shows all", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(f"{each.name:<60} {each.kind:<13} {each.planted}" for each in chosen))
        return 0
    if options.anew:
        options.state.unlink(missing_ok=True)
    outcomes = Campaign(options.state).run(chosen, options.at_once, _say)
    for line in _table(outcomes, only_open=len(outcomes) > 40):
        _say(line)
    _say(summary(outcomes))
    if options.json:
        print(json.dumps({**counts(outcomes), "outcomes": [each.as_json() for each in outcomes]}))
    if options.write:
        kinds = {each.name: each.kind for each in mutations()}
        options.write.write_text(updated_page(options.write, outcomes, kinds), encoding="utf-8")
    return int(not all(each.holds for each in outcomes))


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Return how many faults were planted and killed, and how many controls stayed green."""
    faults = [each for each in outcomes if each.kind is not Kind.CONTROL]
    number = Counter(each.status for each in faults)
    controls = [each for each in outcomes if each.kind is Kind.CONTROL]
    return {
        "planted": len(faults),
        "killed": number[Status.KILLED],
        "killed_by_another": number[Status.KILLED_BY_ANOTHER],
        "survived": number[Status.SURVIVED],
        "not_planted": number[Status.NOT_PLANTED],
        "controls": len(controls),
        "controls_survived": sum(each.holds for each in controls),
    }


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the last line of a campaign."""
    found = counts(outcomes)
    return (
        f"killed {found['killed']} of {found['planted']} planted, {found['killed_by_another']} by another signal than the "
        f"expected one, {found['survived']} survived, {found['not_planted']} not planted; "
        f"{found['controls_survived']} of {found['controls']} controls survived"
    )


def _table(outcomes: Sequence[Outcome], only_open: bool) -> Iterator[str]:
    """Yield a line for each outcome; of many only those that do not hold."""
    for each in outcomes:
        if not (only_open and each.holds):
            yield f"{each.status:<17} {each.name}: {each.planted}"
            yield f"{'':17} expected {' or '.join(each.expected) or 'nothing'}; red: {', '.join(signals(each)) or 'nothing'}"
            yield from (f"{'':17}   {line}" for line in each.red[:2] if not each.holds)


def _is_chosen(mutation: Mutation, options: argparse.Namespace) -> bool:
    if options.kind and mutation.kind not in options.kind:
        return False
    return not options.names or any(
        mutation.name == name or mutation.name.startswith(f"{name}/") or fnmatchcase(mutation.name, name)
        for name in options.names
    )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a mutation, a gate, or a pattern such as '*/verdict'")
    parser.add_argument("--kind", action="append", type=Kind, help=f"only these: {', '.join(Kind)}")
    parser.add_argument("--list", action="store_true", help="list the mutations and run none")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--write", type=Path, help="write the page here")
    parser.add_argument("--state", type=Path, default=STATE, help="file of outcomes, from which a campaign continues")
    parser.add_argument("--anew", action="store_true", help="discard the outcomes of an earlier campaign")
    parser.add_argument("--at-once", type=int, default=2, help="mutations that run at the same time")
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
