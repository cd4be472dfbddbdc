"""MadeAnew: the stages that a build makes anew where a recipe differs, found by the keys of their parts over small made sources."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.build.audit import audit_part, request_facts
from pipeline.build.canaries.canaries import sound_build
from pipeline.build.canaries.memory_build import NO_CHANGES, MemoryBuild
from pipeline.build.recipes import Recipe, pins_of
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.core.errors import GateError, ParamsError, PinError, StageError
from pipeline.core.params import canonical_json, fingerprint
from pipeline.core.table_names import COMPILER_RECORD
from pipeline.pins.build_block import BuildBlock
from pipeline.pins.held_out import HeldOut
from pipeline.pins.pins import SourcePin
from pipeline.stages.enrich.params import BuiltParams
from pipeline.stages.enrich.stage import enrich_source
from pipeline.stages.stages import OF_THE_BUILD, STAGES


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
    """Sources that the recipe before has not, or with other bytes: of them every stage is made."""
    sources_removed: tuple[str, ...] = ()
    """Sources that only the recipe before has."""
    pins_changed: tuple[str, ...] = ()
    """Sources of the same bytes whose pins say something else to later stages."""
    unread_pins: str = ""
    """Reason why it is not known which sources differ; empty if it is."""

    def sentences(self) -> list[str]:
        """Return what it says, for people."""
        sources = {
            "sources that come, made anew from collect on": self.sources_added,
            "sources that go": self.sources_removed,
            "sources whose pins say something else": self.pins_changed,
            "which sources come and go is not known": (self.unread_pins,) if self.unread_pins else (),
        }
        changed = "for the sources whose documents change"
        if any(sources.values()):
            changed = f"with the comparison of all sources, {changed}"
        stages = {
            "made anew": self.made_anew,
            f"made anew {changed}": self.made_where_changed,
            "judged again, nothing of it made": self.judged_again,
            "audited again, nothing else of it made, for its audit keeps what was asked for": self.audited_again,
        }
        lines = (f"{what}: {', '.join(names)}" for what, names in (sources | stages).items() if names)
        return list(lines) or ["nothing is made anew"]


class _UnknownKeyError(Exception):
    """A part that the build before did not make."""


def made_anew(before: Recipe, now: Recipe) -> MadeAnew:
    """Return what a build by `now` makes, after one by `before`.

    Raises ParamsError where neither recipe brings the made sources through all stages.
    """
    anew, sources = _of_same_sources(before, now), _other_sources(before, now)
    if sources is None:
        return anew
    comparing = next(index for index, stage in enumerate(STAGES) if any(kind.only for kind in stage.parts))
    changed = tuple(name for name in STAGES.names[comparing:] if name not in anew.made_anew)
    judged, audited = (
        tuple(name for name in names if name not in changed) for names in (anew.judged_again, anew.audited_again)
    )
    return replace(
        sources, made_anew=anew.made_anew, made_where_changed=changed, judged_again=judged, audited_again=audited
    )


def _other_sources(before: Recipe, now: Recipe) -> MadeAnew | None:
    """Return which sources differ, by their pins; None if none does."""
    if (before.pins, before.sources) == (now.pins, now.sources):
        return None
    try:
        old, new = ({pin.name: pin for pin in pins_of(recipe)} for recipe in (before, now))
    except PinError as error:
        return MadeAnew((), (), (), unread_pins=f"{error.subject}: {error.found}")
    added = tuple(name for name, pin in new.items() if name not in old or pin.identity() != old[name].identity())
    removed = tuple(name for name in old if name not in new)
    others = tuple(name for name in new.keys() - set(added) if _declared(new[name]) != _declared(old[name]))
    changed = tuple(sorted(others))
    found = MadeAnew((), (), (), sources_added=added, sources_removed=removed, pins_changed=changed)
    return found if added or removed or others else None


def _declared(pin: SourcePin) -> dict[str, Any]:
    return pin.model_dump(exclude=set(pin.locator_fields))


def _of_same_sources(before: Recipe, now: Recipe) -> MadeAnew:
    try:
        found = _first_unknown(before, now)
    except (GateError, StageError):  # keys differ either way
        found = _first_of_other(now, before)
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


def _first_of_other(before: Recipe, now: Recipe) -> tuple[str, str] | None:
    try:
        return _first_unknown(before, now)
    except (GateError, StageError) as error:
        found = f"by neither do small sources come through all stages ({error.subject}: {error.found})"
        remedy = "Compare each with a shipped recipe."
        raise ParamsError(f"recipes {now.name} and {before.name}", found, "limits of real sources", remedy) from error


def _first_unknown(before: Recipe, now: Recipe) -> tuple[str, str] | None:
    """Return the first stage with a part whose key a build by `before` does not know, and that part."""
    with tempfile.TemporaryDirectory(prefix="sluice-made-anew-") as folder:
        build = sound_build(Path(folder), before.params)
        held_out = min(set(before.params.held_out.sources) ^ set(now.params.held_out.sources), default="")
        names = sorted(before.builds.keys() | now.builds.keys())
        built = next((name for name in names if before.builds.get(name) != now.builds.get(name)), "".join(names[:1]))
        pins_before, pins_now = (_named(build.pins, held_out, recipe.builds.get(built)) for recipe in (before, now))
        before, now = _with_made_rules(before, now, pins_now[0].name)
        stand_ins = {**build.stand_ins, "built_source": _parsed_alone}
        build = replace(build, params=before.params, pins=pins_before, stand_ins=stand_ins)
        build.run()
        again = replace(build, params=now.params, pins=pins_now)
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


def _with_made_rules(before: Recipe, now: Recipe, source: str) -> tuple[Recipe, Recipe]:
    """Return the recipes with rules of what is held out that are about the made sources: other files, if theirs differ."""
    rules = [recipe.params.held_out for recipe in (before, now)]
    is_same = rules[0].model_copy(update={"sources": rules[1].sources}) == rules[1]
    globs = ((), () if is_same else (f"{source}/**",))
    made = [HeldOut(sources=rule.sources, globs=of_files) for rule, of_files in zip(rules, globs, strict=True)]
    first, second = (
        recipe.model_copy(update={"params": recipe.params.model_copy(update={"held_out": rule})})
        for recipe, rule in zip((before, now), made, strict=True)
    )
    return first, second
