"""Proposals: entries for a pins file with the digest found now, for a person to review and commit."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.contracts.drop_reasons import OF_COLLECT
from pipeline.contracts.part import PartJob
from pipeline.core.errors import ArchiveError, PinError
from pipeline.lexing.languages import is_source
from pipeline.pins.catalog import catalog_entry
from pipeline.pins.pins import SourcePin, parse_pin
from pipeline.stages.collect.contents import ReadOptions, SourceContents
from pipeline.stages.collect.kinds.git import bundle_commands
from pipeline.stages.collect.kinds.sdist import PutBlob, propose_release
from pipeline.stages.collect.kinds.source_kind import Fetcher
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.params import CollectParams, RetryPolicy
from pipeline.stages.collect.refusals import naming_source, refuse_empty

NO_LICENSE = "NOASSERTION"


def propose_cataloged(
    name: str, version: str | None, declared_license: str | None, partial: Path, put_blob: PutBlob
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the pin of a cataloged source, found in pip's package index, and notes for its reviewer.

    `declared_license` overrides the one found.
    """
    from pipeline.stages.collect.network.package_index import PackageIndex, pip_configuration

    index = PackageIndex(pip_configuration(), RetryPolicy())
    entry, notes = propose_release(catalog_entry(name), version, index, partial, put_blob)
    return entry | ({} if declared_license is None else {"declared_license": declared_license}), notes


def read_pinned(pin: SourcePin, path: Path) -> SourceContents:
    """Read the source of a pin from its bytes as a build does. Raises SourceError, also for one without a source file."""
    job = PartJob(pin.name, CollectParams(), {}, pin.identity(), {"source": path})
    with naming_source(pin.name):
        contents = SOURCE_KINDS[pin.kind].contents_of(job, path, ReadOptions(pin.name, pin.selection()))
    refuse_empty(pin.name, contents)
    return contents


def look_inside(entry: Mapping[str, str], fetcher: Fetcher, shown: Callable[[str], str]) -> tuple[str, ...]:
    """Read what the pin of a local file or folder names, and return notes for its reviewer. Raises SourceError, PinError.

    `shown` makes of what a source says of itself, such as the target of a link, what may be shown.
    """
    pin = parse_pin(entry, f"pin {entry['name']}", Path.cwd(), SOURCE_KINDS)
    kind, path = SOURCE_KINDS[pin.kind], Path(entry["path"])
    try:
        contents = read_pinned(pin, path if kind.reads_path else kind.path_of(pin, fetcher))
    except ArchiveError as error:
        remedy = (
            "Pin a folder, a tar or zip archive, a git bundle, or a file of JSON lines, `.jsonl`; unpack another one."
        )
        found = error.found
        if error.member:
            found = f"{error.member} {error.found}"
            remedy = "Pack it again without that member, or unpack it and pin the folder."
        raise PinError(f"pin {pin.name}", f"{entry['path']}: {found}", error.expected, remedy) from error
    files_alone = (f"The files as they are now are pinned, and no commit. {bundle_commands(pin.name, path)}",)
    return (*_notes(contents, pin.declared_license, shown), *(files_alone if (path / ".git").exists() else ()))


def _notes(contents: SourceContents, declared: str, shown: Callable[[str], str]) -> Iterator[str]:
    sizes = [len(file.content) for file in contents.files if is_source(file.path)]
    yield f"{len(sizes)} source files, {sum(sizes) / 1e6:.2f} MB."
    yield from ignored(contents, shown)
    if declared in ("", NO_LICENSE) and len(sizes) == len(contents.files):
        yield "No license text and no `--license`: a file that states no license itself is left out of every corpus."


def ignored(contents: SourceContents, shown: Callable[[str], str]) -> Iterator[str]:
    """Yield what was left out of a source that a person can do something about, a sentence for each kind, with its first name."""
    numbers = Counter(skipped.reason for skipped in contents.skipped)
    for drop in OF_COLLECT:
        if drop.next_step and numbers[drop.name]:
            first = next(skipped for skipped in contents.skipped if skipped.reason == drop.name)
            leads = f" -> {first.detail}" if drop.name == "link" else ""
            name = shown(f"{first.path}{leads}")
            yield f"ignored: {numbers[drop.name]} of the kind {drop.name}, first {name}; {drop.next_step}."


def propose_local(name: str, path: Path, declared_license: str) -> dict[str, str]:
    """Return the pin of a file or folder on this machine; the kind registered last that recognizes it is used."""
    shared = {"name": name, "kind": _AnyKind().name, "declared_license": declared_license}
    parse_pin(shared, f"pin {name}", path.parent, [_AnyKind()])  # before a large folder is read for its digest
    for kind in reversed(tuple(SOURCE_KINDS)):
        fields = kind.fields_of(path)
        if fields is not None:
            entry = {"name": name, "kind": kind.name, **fields, "declared_license": declared_license}
            parse_pin(entry, f"pin {name}", path.parent, SOURCE_KINDS)
            return entry
    raise PinError(f"pin {name}", f"no source kind recognizes {path}", f"one of {', '.join(SOURCE_KINDS.names)}")


@dataclass(frozen=True)
class _AnyKind:
    """The fields that the pins of all kinds share."""

    name: str = "any"
    pin: type[SourcePin] = SourcePin
