"""Stage normalize: one part per source by the rules, then one part over all sources for duplicates.

The first, `normalize/rules`, reads files.parquet of collect and writes documents, dropped, signatures and copyleft; the
second, `normalize/duplicates`, reads those and writes duplicates and kept. A broken rule, or a source that became something
else, first shows as a share that jumps: each drop reason has a band among all files, each language one in its source.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pipeline.contracts.joined_parts import make_joined, shard_parts
from pipeline.contracts.part import (
    COPIES_LABEL,
    DUPLICATES_PART,
    EVIDENCE_LABEL,
    LINKS_LABEL,
    MEMORY_REMEDY,
    SCRATCH,
    FileName,
    MadePart,
    Note,
    Part,
    StageContext,
    StageOutput,
    Tables,
)
from pipeline.contracts.stage_report import StageReport, total
from pipeline.core.change_text import CHANGES
from pipeline.core.errors import StageError
from pipeline.core.params import Params, digest
from pipeline.core.records import Split
from pipeline.core.table_names import DOCUMENTS, DROPPED, DUPLICATES, FILES, KEPT
from pipeline.stages.normalize.bands import drops_outside, languages_outside
from pipeline.stages.normalize.contamination.evaluation_items import EVALUATION_ITEMS, digest_of_items
from pipeline.stages.normalize.license.extents import texts_digest
from pipeline.stages.normalize.license.policy import policy_bytes
from pipeline.stages.normalize.params import NormalizeParams, RulesIdentity, RulesParams
from pipeline.stages.normalize.scrub.detectors import detector_versions

_MAX_PLACES = 10
MAX_NUM_AT_ONCE = 100_000
"""Documents up to which a corpus is compared at once. Which way it is compared shows in no row."""
NUM_IN_RANGE = 200_000
"""Documents for which there is one range of marks more, twice as many where they do not fit."""
NUM_SHARES = 4
"""Parts that copies are found by. Each reads all shards once."""
MARKS_SUFFIX = ".marks"
"""End of the names of parts of marks. No source's name has a dot."""
_IF_ANY = ("decisions", "held_out", CHANGES)
"""Fields of an identity that are not in it without a value."""


def run(context: StageContext[NormalizeParams]) -> StageOutput:
    """Clean every source, then find duplicates among the documents. A source that fails is reported; the others continue."""
    # Another rule may have been asked of collect.
    context.held_out.refuse_idle_parts(context.inputs, context.read, context.withdrawn)
    pins = {pin.name: {"revision": pin.revision} for pin in context.pins}
    rules, failures = make_joined(context, _rules_parts(context), pins)
    duplicates, _ = context.make([duplicates_part(context, rules, make_links(context, rules))])
    made = duplicates[DUPLICATES_PART]
    parts = {name: rules[name].object_id for name in sorted(rules)} | {DUPLICATES_PART: made.object_id}
    report = _report([rules[name] for name in sorted(rules)], made.report)
    drops = drops_outside(report, report.rows_in, context.params.drop_bands)
    bands = {pin.name: pin.languages for pin in context.pins}
    languages = languages_outside({name: part.report for name, part in rules.items()}, bands)
    num_outside = {
        "num_drop_reasons_outside_band": len(drops),
        "num_languages_outside_band": len(languages),
        "num_language_bands": sum(map(len, bands.values())),
    }
    report = replace(report, measures=dict(sorted({**report.measures, **num_outside}.items())))
    cleaned = [rules[name] for name in sorted(rules)]
    notes = (
        *_files_of_reasons(context, parts, drops or _most_dropped(report)),
        *map(Note, languages),
        *_known_secrets(context, cleaned),
        *_restrictions(context, cleaned),
        *_gibberish(context, cleaned),
        *_texts_inside(context, rules, made),
    )
    return StageOutput(parts, report, failures, notes=notes, warnings=tuple(_decision_warnings(context, rules)))


def _decision_warnings(context: StageContext[NormalizeParams], rules: Mapping[str, MadePart]) -> Iterator[str]:
    """Yield a sentence for each decision without effect."""
    for decision in context.decisions:
        if decision.source not in rules:
            yield f"The decision about {decision.name} has no effect: its source is not in this build."
    for name in sorted({decision.source for decision in context.decisions} & rules.keys()):
        from pipeline.stages.normalize.decided_files import outcomes_in  # loaded where there are decisions

        yield from filter(None, (outcome.warning for outcome in outcomes_in(context.read(rules[name].object_id))))


def _decided(context: StageContext[NormalizeParams]) -> dict[str, tuple[dict[str, Any], ...]]:
    """Return the decisions about each source, as JSON. Their words are scrubbed: they are stored, and shown."""
    if not context.decisions:
        return {}
    from pipeline.stages.normalize.scrub.shown_text import ShownText  # a build without decisions does not wait for it

    found: dict[str, tuple[dict[str, Any], ...]] = {}
    text = ShownText(context.params.scrub)
    for decision in context.decisions:
        words = {name: text.shown(getattr(decision, name)) for name in ("reason", "person")}
        found[decision.source] = (*found.get(decision.source, ()), {**decision.as_json(), **words})
    return found


def _most_dropped(report: StageReport) -> dict[str, str]:
    """Return a sentence about the reason of most drops, where nothing is kept; otherwise none."""
    most = max(sorted(report.dropped), key=report.dropped.__getitem__, default=None)
    return {} if most is None or report.rows_out else {most: f"No document is kept: most were dropped as {most}."}


def _files_of_reasons(
    context: StageContext[NormalizeParams], parts: Mapping[str, str], sentences: Mapping[str, str]
) -> Iterator[Note]:
    """Yield the sentence of each reason with some of the files that were dropped for it."""
    for reason, sentence in sentences.items():
        files: list[FileName] = []
        for name, object_id in parts.items():
            table = DUPLICATES if name == DUPLICATES_PART else DROPPED
            rows = context.read(object_id).table(table, ["source", "path", "reason"]).to_pylist()
            files += [(row["source"], row["path"]) for row in rows if row["reason"] == reason]
        files.sort(key=digest)  # of all folders, and always the same
        yield Note(sentence, tuple(files[:_MAX_PLACES]))


def _known_secrets(context: StageContext[NormalizeParams], rules: Sequence[MadePart]) -> Iterator[Note]:
    """Yield a sentence for each source in which the gate's own rules find secrets, with the places of some of them."""
    for part in (part for part in rules if part.report.measures["num_known_secrets"]):
        from pipeline.stages.normalize.decided_files import SourceDecisions, outcomes_in
        from pipeline.stages.normalize.measures import waived_findings
        from pipeline.stages.normalize.text_gates.gitleaks import (
            find_in_rows,  # a build that finds none does not wait for them
        )

        stored = context.read(part.object_id)
        decisions = SourceDecisions([outcome.decision for outcome in outcomes_in(stored)])
        tables = [stored.table(name) for name in (DOCUMENTS, DROPPED)]
        found = find_in_rows(tables, waived_findings(tables[0], decisions))
        places = _some([f"{path}{f':{each.line}' if each.line else ''} ({each.rule})" for path, each in found])
        yield Note(
            f"Source {part.name}: rules of gitleaks find {places}; leave such a file out by `exclude` in its pin, or `waive` what "
            "is no secret in decisions.toml.",
            _files(part, found),
        )


def _restrictions(context: StageContext[NormalizeParams], rules: Sequence[MadePart]) -> Iterator[Note]:
    """Yield a sentence for each source with words that the licenses of its documents do not explain, with some places."""
    for part in (part for part in rules if part.report.measures["num_restrictions_left"]):
        from pipeline.stages.normalize.text_gates.restrictions import restrictions_left

        files = context.read(context.inputs[part.name]).table(FILES, ["path", "content"])
        found = list(restrictions_left(context.read(part.object_id).table(DOCUMENTS), files))
        places = _some([f"{path}:{each.line} ({each.name})" for path, each in found])
        yield Note(
            f"Source {part.name}: documents say what their license does not: {places}; leave such a file out by `exclude` in its "
            "pin, or conclude its license in decisions.toml.",
            _files(part, found),
        )


def _gibberish(context: StageContext[NormalizeParams], rules: Sequence[MadePart]) -> Iterator[Note]:
    """Yield a sentence for each source with documents that look wrongly decoded, with some places."""
    for part in (part for part in rules if part.report.measures["num_gibberish_left"]):
        from pipeline.stages.normalize.text_gates.gibberish import gibberish_in_rows

        found = list(gibberish_in_rows(context.read(part.object_id).table(DOCUMENTS)))
        places = _some([f"{path}:{each.line} ({each.name})" for path, each in found])
        sentence = f"documents look wrongly decoded: {places}; leave such a file out by `exclude` in its pin."
        yield Note(f"Source {part.name}: {sentence}", _files(part, found))


def _texts_inside(
    context: StageContext[NormalizeParams], rules: Mapping[str, MadePart], made: MadePart
) -> Iterator[Note]:
    """Yield a sentence with some of the documents whose text lies in a larger one."""
    if made.report.measures["num_texts_inside_others"]:
        from pipeline.stages.normalize.measures import KeptIds, texts_inside

        sources = {name: context.read(part.object_id) for name, part in rules.items()}
        kept = KeptIds(context.read(made.object_id).table(KEPT, ["document_id"]))
        found = texts_inside(sources, kept, context.params.duplicates)
        places = _some([f"{part} in {whole} ({share:.0%})" for part, whole, share in found])
        sentence = f"Documents are contained in larger ones: {places}; leave such a file out by `exclude` in its pin."
        named = (part.partition(" ") for part, _, _ in found[:_MAX_PLACES])
        yield Note(sentence, tuple((source, path) for source, _, path in named))


def _files(part: MadePart, found: Sequence[tuple[str, Any]]) -> tuple[FileName, ...]:
    return tuple((part.name, path) for path, _ in found[:_MAX_PLACES])


def _some(places: Sequence[str]) -> str:
    more = f" and {len(places) - _MAX_PLACES} more" if len(places) > _MAX_PLACES else ""
    return ", ".join(places[:_MAX_PLACES]) + more


def _rules_parts(context: StageContext[NormalizeParams]) -> dict[str, list[Part]]:
    """Return the parts of each source, one a shard: what each reads beside its own files is the evidence of its source."""
    params = context.params
    rules = RulesParams(
        filters=params.filters,
        licenses=params.licenses,
        scrub=params.scrub,
        decontamination=params.decontamination.rules(),
        min_num_tokens=params.duplicates.min_num_tokens,
        permutation_seed=params.duplicates.permutation_seed,
    )
    pins = {pin.name: pin for pin in context.pins}
    policy_sha256 = hashlib.sha256(policy_bytes()).hexdigest()
    items_folder = params.decontamination.items_folder
    places = {EVALUATION_ITEMS: Path(items_folder)} if items_folder else {}
    parts = {}
    decided = _decided(context)
    for source, object_id in sorted(context.inputs.items()):
        is_held_out = context.held_out.holds_out(source)
        of_files = None if is_held_out else context.held_out.of_files(source)
        identity = RulesIdentity(
            split=Split.HELD_OUT if is_held_out else Split.TRAIN,
            declared_license=pins[source].declared_license,
            inherit_license=pins[source].inherit_license,
            license_policy_sha256=policy_sha256,
            license_texts_digest=texts_digest(),
            evaluation_sha256=digest_of_items(items_folder),
            detectors=detector_versions(),
            decisions=decided.get(source, ()),
            held_out=None if of_files is None else of_files.model_dump(mode="json"),
            changes=bool(context.read(object_id).identity.get(CHANGES)),
        )
        fields = {name: value for name, value in asdict(identity).items() if name not in _IF_ANY or value}
        stored = context.read(object_id)
        beside = {label: stored.inputs[label] for label in (EVIDENCE_LABEL,) if label in stored.inputs}

        def part_of(name: str, shard: Tables, beside: Mapping[str, str] = beside, fields: Any = fields) -> Part:
            return Part(name, "clean", rules, {"files": shard.object_id, **beside}, fields, places)

        parts[source] = shard_parts(source, stored, part_of)
    return parts


def make_links(context: StageContext[NormalizeParams], rules: Mapping[str, MadePart]) -> dict[str, str]:
    """Make the links of a corpus that is too large to be compared at once, a part a range of marks; of others there are none."""
    num_documents = sum(part.report.rows_out for part in rules.values())
    if num_documents <= MAX_NUM_AT_ONCE:
        return {}
    shards = [shard for name in sorted(rules) for shard in context.read(rules[name].object_id).shards]
    names = [f"{shard.identity['name']}{MARKS_SUFFIX}" for shard in shards]
    marked = _made(
        context,
        [Part(name, "mark", Params(), {"rules": shard.object_id}) for name, shard in zip(names, shards, strict=True)],
    )
    inputs = {f"{number:06d}": marked[name] for number, name in enumerate(names)}
    num_ranges = 1 << (num_documents // NUM_IN_RANGE).bit_length()
    ranges = [
        Part(f"{DUPLICATES_PART}.{number:03d}", "link", Params(), inputs, {"range": number, "num_ranges": num_ranges})
        for number in range(num_ranges)
    ]
    linked = _made(context, ranges)
    return {f"{LINKS_LABEL}{number:03d}": linked[part.name] for number, part in enumerate(ranges)}


def _made(context: StageContext[NormalizeParams], parts: Sequence[Part]) -> dict[str, str]:
    """Make parts that no source can be without, and return their ids by name."""
    made, failed = context.make(parts)
    for name, error in failed.items():
        raise StageError(f"part {name}, of all sources", error.found, error.expected, MEMORY_REMEDY) from error
    return {name: part.object_id for name, part in made.items()}


def duplicates_part(
    context: StageContext[NormalizeParams], rules: Mapping[str, MadePart], links: Mapping[str, str]
) -> Part:
    """Return the part that compares all sources. Copies of a large corpus are found before it, by several parts."""
    inputs = {name: rules[name].object_id for name in sorted(rules)} | dict(links)
    roots, upstreams = sorted(context.params.licenses.vendored_roots), _upstreams(context, rules)
    identity: dict[str, Any] = {"vendored_roots": roots}
    function, places = ("compare_groups", {SCRATCH: context.store_root / "tmp"}) if links else ("compare", {})
    params = context.params.duplicates
    if links and not upstreams:  # upstreams are named by what is left of all groups
        shares = [
            Part(
                f"{DUPLICATES_PART}.copies{share}",
                "copies",
                params,
                inputs,
                {**identity, "share": share, "num_shares": NUM_SHARES},
                places,
            )
            for share in range(NUM_SHARES)
        ]
        made = _made(context, shares)
        inputs = inputs | {f"{COPIES_LABEL}{share}": made[part.name] for share, part in enumerate(shares)}
    return Part(DUPLICATES_PART, function, params, inputs, {**identity, "upstreams": upstreams}, places)


def _upstreams(context: StageContext[NormalizeParams], rules: Mapping[str, MadePart]) -> dict[str, dict[str, str]]:
    """Return the upstreams that pins name for their vendored files, if both sources are in this build."""
    named = {
        pin.name: {glob: upstream for glob, upstream in sorted(pin.upstreams.items()) if upstream in rules}
        for pin in context.pins
        if pin.name in rules
    }
    return {source: globs for source, globs in named.items() if globs}


def _report(rules: Sequence[MadePart], duplicates: StageReport) -> StageReport:
    """Return the report: rows in are collected files, rows out kept documents; drops and measures of both phases."""
    cleaned = total(part.report for part in rules)
    return replace(
        cleaned,
        rows_out=duplicates.rows_out,
        num_bytes_out=duplicates.num_bytes_out,
        dropped=dict(sorted((Counter(cleaned.dropped) + Counter(duplicates.dropped)).items())),
        measures=dict(sorted({**cleaned.measures, **duplicates.measures}.items())),
    )
