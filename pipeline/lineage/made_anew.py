"""MadeAnew: the stages that a build makes anew where a recipe differs, found by the keys of their parts over small made sources."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.build.audit import audit_part, request_facts
from pipeline.build.canaries.canaries import sound_build
from pipeline.build.canaries.memory_build import NO_CHANGES, MemoryBuild
from pipeline.build.recipes import CorpusParams, Recipe, pins_of
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.contracts.stage import OF_THE_BUILD
from pipeline.core.errors import GateError, ParamsError, PinError, StageError
from pipeline.core.params import canonical_json, fingerprint
from pipeline.core.table_names import COMPILER_RECORD
from pipeline.pins.build_block import BuildBlock
from pipeline.pins.held_out import HeldOut
from pipeline.pins.pins import SourcePin
from pipeline.stages.enrich.params import BuiltParams
from pipeline.stages.enrich.stage import enrich_source
from pipeline.stages.stages import STAGES

_MADE_BYTES = 1024**3
"""More than any made source has."""


@dataclass(frozen=True)
class MadeAnew:
    """Stages that a build makes by one recipe, where all that it needs by another is in the store."""

    made_anew: tuple[str, ...]
    """Stages of which each part has another key."""
    made_where_changed: tuple[str, ...]
    """Stages of which the sources are made anew whose documents the change adds or drops."""
    judged_again: tuple[str, ...]
    """Stages with other parameters, all of them limits of gates: their parts are recognized."""
    audited_again: tuple[str, ...] = ()
    """Stages that have another object for their audit alone: it keeps what the build was asked for."""
    sources_added: tuple[str, ...] = ()
    """Sources that the recipe before has not, or reads otherwise, as other bytes or by a compiler: of them every stage is made."""
    sources_removed: tuple[str, ...] = ()
    """Sources that only the recipe before has."""
    pins_changed: tuple[str, ...] = ()
    """Sources of the same bytes whose pins say something else to later stages."""
    unread_pins: str = ""
    """Reason why it is not known which sources differ; empty if it is."""

    def sentences(self) -> list[str]:
        """Return what it says, for people."""
        sources = {
            "sources that come, or are read otherwise, made anew from collect on": self.sources_added,
            "sources that go": self.sources_removed,
            "sources whose pins say something else": self.pins_changed,
            "which sources come and go is not known": (self.unread_pins,) if self.unread_pins else (),
        }
        changed = "for the sources whose documents change"
        if self.sources_added or self.sources_removed or self.unread_pins:
            changed = f"with the comparison of all sources, {changed}"
        elif self.pins_changed:
            changed = f"for what those pins say, and {changed}"
        stages = {
            "made anew": self.made_anew,
            f"made anew {changed}": self.made_where_changed,
            "judged again, nothing of it made": self.judged_again,
            "audited again, nothing else of it made, for its audit keeps what was asked for": self.audited_again,
        }
        lines = (f"{what}: {', '.join(names)}" for what, names in (sources | stages).items() if names)
        return list(lines) or ["nothing is made anew"]


class _Pins(NamedTuple):
    """Facts that the pins of both recipes share, as far as they are known."""

    names: frozenset[str] | None
    block: BuildBlock | None
    """The build block of one of them, if a compiler reads any."""
    said: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {})
    """Fields of pins of the same bytes that differ, each as one pin has it before and now."""


class _UnknownKeyError(Exception):
    """A part that the build before did not make."""


def made_anew(before: Recipe, now: Recipe) -> MadeAnew:
    """Return what a build by `now` makes, after one by `before`.

    Raises ParamsError where neither recipe brings the made sources through all stages, and for a rule of what is held out that no
    build by `now` takes.
    """
    sources, pins = _compared_pins(before, now)
    anew = _of_same_sources(before, now, pins._replace(said=({}, {})))
    if sources is None:
        return anew
    if sources.sources_added or sources.sources_removed or sources.unread_pins or "upstreams" in pins.said[0]:
        following = STAGES.names[
            next(place for place, stage in enumerate(STAGES) if any(each.only for each in stage.parts)) :
        ]
    else:
        by_pins = _of_same_sources(before, now, pins)
        following = by_pins.made_anew + by_pins.made_where_changed
    changed = tuple(name for name in following if name not in anew.made_anew)
    judged, audited = (
        tuple(name for name in names if name not in changed) for names in (anew.judged_again, anew.audited_again)
    )
    return replace(
        sources, made_anew=anew.made_anew, made_where_changed=changed, judged_again=judged, audited_again=audited
    )


def _compared_pins(before: Recipe, now: Recipe) -> tuple[MadeAnew | None, _Pins]:
    """Return which sources differ by their pins, None if none does, and what both have."""
    try:
        old, new = ({pin.name: pin for pin in pins_of(recipe)} for recipe in (before, now))
    except PinError as error:
        is_same = (before.pins, before.sources, before.builds) == (now.pins, now.sources, now.builds)
        unread = None if is_same else MadeAnew((), (), (), unread_pins=f"{error.subject}: {error.found}")
        return unread, _Pins(None, _shared(before.builds, now.builds))
    now.params.held_out.refuse_idle_sources(new)
    built = _shared(*({name: pin.build for name, pin in pins.items() if pin.build} for pins in (old, new)))
    added = tuple(name for name, pin in new.items() if name not in old or pin.identity() != old[name].identity())
    removed = tuple(name for name in old if name not in new)
    others = tuple(name for name in new.keys() - set(added) if _declared(new[name]) != _declared(old[name]))
    found = MadeAnew((), (), (), sources_added=added, sources_removed=removed, pins_changed=tuple(sorted(others)))
    said = [(_declared(old[name]), _declared(new[name])) for name in sorted(others)]
    differing = {
        field: (was[field], has[field]) for was, has in reversed(said) for field in has if was[field] != has[field]
    }
    said_by_each = (
        {field: was for field, (was, _) in differing.items()},
        {field: has for field, (_, has) in differing.items()},
    )
    both = _Pins(frozenset(old.keys() & new.keys()), built, said_by_each)
    return found if added or removed or others else None, both


def _shared(old: Mapping[str, BuildBlock], new: Mapping[str, BuildBlock]) -> BuildBlock | None:
    return next((block for name, block in sorted(new.items()) if old.get(name) == block), None)


def _declared(pin: SourcePin) -> dict[str, Any]:
    return pin.model_dump(exclude=set(pin.locator_fields))


def _of_same_sources(before: Recipe, now: Recipe, pins: _Pins) -> MadeAnew:
    try:
        found = _first_unknown(before, now, pins)
    except (GateError, StageError):  # keys differ either way
        found = _first_of_other(now, before, pins)
    names, differing = list(STAGES.names), [name for name in STAGES.names if _differs(name, before, now)]
    if found is None:
        return MadeAnew((), (), tuple(differing), _audited_again(names, before, now))
    first, part = names.index(found[0]), found[1]
    earlier = tuple(name for name in differing if names.index(name) < first)
    is_single = any(kind.only == part for kind in STAGES[found[0]].parts)
    num_whole = first + 1 if is_single else len(names)
    audited = _audited_again(names[:first], before, now)
    return MadeAnew(tuple(names[first:num_whole]), tuple(names[num_whole:]), earlier, audited)


def _audited_again(stages: Sequence[str], before: Recipe, now: Recipe) -> tuple[str, ...]:
    """Return those of these stages whose audits are asked something else, whatever the sources."""
    requests = [request_facts((), recipe.params) for recipe in (before, now)]
    asked = {name: [audit_part(name, {}, {}, request).identity for request in requests] for name in stages}
    return tuple(name for name, (first, second) in asked.items() if first != second)


def _first_of_other(before: Recipe, now: Recipe, both: _Pins) -> tuple[str, str] | None:
    try:
        return _first_unknown(before, now, both)
    except (GateError, StageError) as error:
        found = f"by neither do small sources come through all stages ({error.subject}: {error.found})"
        remedy = "Compare each with a shipped recipe."
        raise ParamsError(f"recipes {now.name} and {before.name}", found, "limits of real sources", remedy) from error


def _first_unknown(before: Recipe, now: Recipe, both: _Pins) -> tuple[str, str] | None:
    """Return the first stage with a part whose key a build by `before` does not know, and that part."""
    with tempfile.TemporaryDirectory(prefix="sluice-made-anew-") as folder:
        build = sound_build(Path(folder), before.params)
        held_out = min(set(before.params.held_out.sources) ^ set(now.params.held_out.sources), default="")
        pins = _named(build.pins, held_out, both.block)
        rules = _made_rules(before.params.held_out, now.params.held_out, pins[0].name, both.names)
        old, new = (
            _in_whole_sources(recipe.params).model_copy(update={"held_out": rule})
            for recipe, rule in zip((before, now), rules, strict=True)
        )
        stand_ins = {**build.stand_ins, "built_source": _parsed_alone}
        pins_before, pins_now = ((pins[0].model_copy(update=dict(said)), *pins[1:]) for said in both.said)
        build = replace(build, params=old, pins=pins_before, stand_ins=stand_ins)
        build.run()
        again = replace(build, params=new, pins=pins_now)
        return next(((stage, part) for stage in STAGES.names if (part := _unknown_part(again, stage))), None)


def _unknown_part(build: MemoryBuild, stage: str) -> str:
    """Return the first part of a stage whose key the build does not know; nothing if it knows all."""

    def refuse(job: PartJob) -> PartOutput:
        raise _UnknownKeyError(job.name)

    functions = (item for kind in STAGES[stage].parts for item in kind.functions.items())
    refused = {name: refuse for name, place in functions if place != OF_THE_BUILD}
    try:
        replace(build, stand_ins={**build.stand_ins, **refused}).verdicts(stage, NO_CHANGES)
    except _UnknownKeyError as error:
        return str(error)
    return ""


def _differs(stage: str, before: Recipe, now: Recipe) -> bool:
    return fingerprint(before.params.of_stage(stage)) != fingerprint(now.params.of_stage(stage))


def _named(pins: Sequence[SourcePin], held_out: str, block: BuildBlock | None) -> tuple[SourcePin, ...]:
    """Give a source the name that one of the recipes alone holds out, if there is one, and another the arguments of a compiler."""
    first, second, *others = pins
    first = first.model_copy(update={"name": held_out or first.name})
    return (first, second.model_copy(update={"build": block}), *others)


def _parsed_alone(job: PartJob) -> PartOutput:
    """Make the part of a source that a compiler would read by the parser alone: no program is started."""
    assert isinstance(job.params, BuiltParams)
    made = enrich_source(replace(job, params=job.params.syntax))
    return replace(made, files={COMPILER_RECORD: canonical_json({"notes": []})})


def _made_rules(before: HeldOut, now: HeldOut, source: str, names: frozenset[str] | None) -> tuple[HeldOut, HeldOut]:
    """Return rules about the made sources that differ as these do: in what they say of files of `source`, or in words alone."""
    if before == now:
        return HeldOut(sources=before.sources), HeldOut(sources=now.sources)
    every = f"{source}/**"
    if names is not None and all(_split(before, name) == _split(now, name) for name in names):
        return HeldOut(sources=(source,)), HeldOut(sources=(source,), globs=(every,))
    is_same = before.model_copy(update={"sources": now.sources}) == now
    return HeldOut(sources=before.sources), HeldOut(sources=now.sources, globs=() if is_same else (every,))


def _split(rule: HeldOut, source: str) -> bool | HeldOut | None:
    """Return what a rule says of a source: that it is held out as a whole, or what it says of its files."""
    return rule.holds_out(source) or rule.of_files(source)


def _in_whole_sources(params: CorpusParams) -> CorpusParams:
    """Return Params by which a made source is one part, and which differ where the sizes of shards do: they are in its key."""
    sizes = {name: getattr(params.collect, name) + _MADE_BYTES for name in ("min_shard_bytes", "max_shard_bytes")}
    return params.model_copy(update={"collect": params.collect.model_copy(update=sizes)})
