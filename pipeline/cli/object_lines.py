"""Lines that describe the refs of a corpus, and an object, in a screen's height; `--json` prints them whole."""

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.core.errors import both_ends
from pipeline.store.refs import LAST, LIVE
from pipeline.store.snapshot import REFS

SHORT = 12
"""Digits of an id that are shown."""
_MAX_NAMED = 6
_MAX_FAILURE = 200
_LIMITS = "live by limits that are not the recipe's:"
_UNTOLD = "whether it holds what is withdrawn, a damaged log does not tell: `python -m pipeline fsck`"
_REFS_FIRST = (*REFS, LAST)


def ref_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """Format the refs of a corpus: what each names, since when, and why it was moved; promotions first."""
    refs, history, gone = answer["refs"], answer["history"], answer["gone"]
    yield f"corpus {answer['corpus']}"
    moved = {entry["ref"]: entry for entry in history if entry["new"] != entry["old"]}  # others add to the proof alone
    for name in sorted(refs, key=lambda name: (name not in _REFS_FIRST, name)):
        entry = moved.get(name, {"when": "", "reason": ""})
        yield f"  {name:<10} {_short(refs[name])}  since {_time(entry['when'])}  {entry['reason']}".rstrip()
    if answer["withdrawn"] is None:
        yield f"  {_UNTOLD}"
    for held, selectors in (answer["withdrawn"] or {}).items():
        yield f"  {_short(held)} holds what is withdrawn, {_some(selectors)}: build and promote again"
    proved: Mapping[str, Any] = next((entry for entry in reversed(history) if entry["ref"] == LIVE), {})
    if limits := proved.get("other_limits"):
        yield f"  {_LIMITS} {_some(limits.split('; '))}"
        if proved["new"] == proved["old"]:
            yield f"  by them      since {_time(proved['when'])}  {proved['reason']}"
    past = [f"{_short(name)}{', removed by gc' if name in gone else ''}" for name in answer["lives"][-2::-1]]
    if past:
        yield f"  live before: {'; '.join(past[:_MAX_NAMED])}"
    for name, move in [*reversed(answer["rolled_back"].items())][:_MAX_NAMED]:
        yield f"  rolled back from {_short(name)}  {_time(move['when'])}  back with a reason alone"


def object_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """Format an object: what it is, what it was made of, its rows, its verdicts and its files."""
    yield f"{answer['kind']} {answer['id']}"
    if answer["refs"]:
        yield f"  refs       {', '.join(answer['refs'])}"
    if answer["withdrawn"] is None:
        yield f"  withdrawn  {_UNTOLD}"
    for selectors in (answer["withdrawn"] or {}).values():
        yield f"  withdrawn  {_some(selectors)}, which it holds: build and promote again"
    for corpus, limits in answer["live_limits"].items():
        yield f"  {_LIMITS} {corpus}: {_some(limits.split('; '))}"
    plain = {name: value for name, value in answer["identity"].items() if isinstance(value, str | int | float)}
    yield f"  identity   {_some([f'{name} {_value(value)}' for name, value in sorted(plain.items())])}"
    inputs = answer["inputs"]
    yield f"  made from  {_some([f'{label} {_short(name)}' for label, name in inputs.items()]) or 'nothing in the store'}"
    if report := answer.get("report"):
        tokens = report["measures"].get("num_tokens")
        in_tokens = f", {tokens:,.0f} tokens" if tokens else ""
        size = f", {report['num_bytes_out'] / 1e6:,.2f} MB" if report["num_bytes_out"] else ""
        yield f"  rows       {report['rows_in']:,} in, {report['rows_out']:,} out{size}{in_tokens}"
        drops = sorted(report["dropped"].items(), key=lambda item: (-item[1], item[0]))
        if drops:
            yield f"  dropped    {_some([f'{reason} {count:,}' for reason, count in drops])}"
    if answer["verdicts"]:
        yield from _verdict_lines(answer["verdicts"])
    for name, message in answer["failures"].items():
        yield f"  failed     {name}: {both_ends(message.removeprefix(f'{name}: '), _MAX_FAILURE)}"
    sizes = [entry["num_bytes"] for entry in answer["files"]]
    names = _some([entry["name"] for entry in answer["files"]])
    yield f"  files      {len(sizes)}, {sum(sizes):,} bytes: {names}"


def _verdict_lines(stored: Mapping[str, Any]) -> Iterator[str]:
    verdicts = stored["verdicts"]
    failed = [verdict for verdict in verdicts if not verdict["passed"]]
    yield f"  gates      {len(verdicts) - len(failed)} of {len(verdicts)} passed, judged {_time(stored['when'])}"
    for one in failed:
        word = "BLOCKED" if one["blocking"] else "warning"
        limit = f"must be {one['comparison']} {one['limit']:g}"
        yield f"  {word:<10} {one['gate']}: {one['measure']} is {one['measured']:g}, {limit}"


def _some(texts: list[str]) -> str:
    more = f" and {len(texts) - _MAX_NAMED} more" if len(texts) > _MAX_NAMED else ""
    return ", ".join(texts[:_MAX_NAMED]) + more


def _short(object_id: str | None) -> str:
    return (object_id or "nothing")[:SHORT]


def _value(value: object) -> str:
    text = str(value)
    return text if len(text) < 2 * SHORT else text[:SHORT]


def _time(when: str) -> str:
    return f"{when[:10]} {when[11:16]} UTC" if when else "an unknown time"
