"""Check of a whole store: every object, ref, key, log and blob."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

from pipeline.core.digests import file_sha256
from pipeline.core.errors import StoreError
from pipeline.core.params import digest, parse_json
from pipeline.formats.snapshot_json import SNAPSHOT_KIND, SNAPSHOT_ROWS
from pipeline.formats.tables import SHARD_LABEL
from pipeline.store.log import LOGS, PROMOTIONS, RECEIPT
from pipeline.store.objects import (
    PART_LABELS,
    Manifest,
    StoredObject,
    erased_files,
    missing_key,
    read_manifest,
    shard_ids,
)
from pipeline.store.removals import ERASED
from pipeline.store.store import Store, StoredReceipt
from pipeline.store.store_layout import ANCESTOR, has_format, refuse_other_format, visible
from pipeline.store.verdicts import missing_verdicts

Needs = dict[str, list[str]]
"""Id of an object -> what needs it."""
StoreCheck = Callable[[Store], Iterator[object]]
"""A check of a store, which iterates over what is wrong."""


def fsck(store: Store, further: Iterable[StoreCheck] = ()) -> list[str]:
    """Return all damage in the store, one line each: what is damaged or missing, and which objects or refs need it.

    `further` are checks that only rooms above the store can make.
    """
    with store.in_use() if has_format(store.root) else nullcontext():
        return _damages(store, [*_CHECKS, *further])


def _damages(store: Store, checks: Iterable[StoreCheck]) -> list[str]:
    damaged: dict[str, str] = {}
    manifests: dict[str, Manifest] = {}
    wrong = store.storage.fetch_all("objects")
    for path in visible(store.root.glob("objects/*/*/*")):
        try:
            manifests[path.name] = read_manifest(path)
            stored = StoredObject(path, manifests[path.name], store.storage.stored_sha256)
            stored.verify()
            stored.refuse_foreign_files()
        except StoreError as error:
            damaged[path.name] = str(error)
    needed_by = _needs(store, manifests)
    others = wrong + [line for check in checks for line in _lines(check(store))]
    others += [*_missing_keys(store, manifests), *_missing_records(store, manifests)]
    damaged |= {name: f"object {name[:12]}: it is missing." for name in needed_by if store.locate(name) is None}
    return [
        f"{text} Needed by {', '.join(needed_by.get(name, ['nothing']))}." for name, text in sorted(damaged.items())
    ] + others


def _needs(store: Store, manifests: dict[str, Manifest]) -> Needs:
    needed_by: Needs = {}
    absent = _absent_inputs(store, manifests)
    for name, manifest in manifests.items():
        inputs = {each for role, each in manifest.inputs.items() if not role.startswith(ANCESTOR)}
        for input_id in inputs - absent.get(name, set()):
            needed_by.setdefault(input_id, []).append(f"{manifest.kind} {name[:12]}")
    for name, places in store.named_by().items():
        if not name.startswith("damaged"):
            needed_by.setdefault(name, []).extend(f"ref {place}" for place in places)
    return needed_by


def _absent_inputs(store: Store, manifests: Mapping[str, Manifest]) -> dict[str, set[str]]:
    """Return what the snapshots that hold their rows alone were made from, and what these rows were made from."""
    absent: dict[str, set[str]] = {}
    for name in sorted(_rows_alone(store) & manifests.keys()):
        inputs = manifests[name].inputs
        rows = {each for role, each in inputs.items() if role.startswith(SNAPSHOT_ROWS)}
        here = rows & manifests.keys()
        shards = {shard for each in here for shard in shard_ids(manifests[each].inputs)}
        absent |= {each: set(manifests[each].inputs.values()) - shards for each in here | (shards & manifests.keys())}
        absent[name] = set(inputs.values()) - rows
    return absent


def _rows_alone(store: Store) -> set[str]:
    try:
        return store.rows_alone()
    except StoreError:  # one more finding of `_bad_logs`
        return set()


def _lines(found: Iterator[object]) -> Iterator[str]:
    """Iterate over what a check finds; an error that ends it is one more finding."""
    try:
        yield from map(str, found)
    except StoreError as error:
        yield str(error)


def _bad_format(store: Store) -> Iterator[str]:
    refuse_other_format(store.root)
    yield from ()


def _bad_logs(store: Store) -> Iterator[str]:
    for log in LOGS:
        try:
            list(store.entries(log))
        except StoreError as error:
            yield str(error)


def _bad_refs(store: Store) -> Iterator[object]:
    try:
        list(store.entries(PROMOTIONS))
    except StoreError:  # one more finding of `_bad_logs`
        return
    yield from store.bad_refs()


def _bad_verdicts(store: Store) -> Iterator[str]:
    store.storage.fetch_all("verdicts")
    for path in visible(store.root.glob("verdicts/*")):
        try:
            store.verdicts(path.stem)
        except StoreError as error:
            yield str(error)
        if store.locate(path.stem) is None:
            yield f"verdicts of object {path.stem[:12]}: the object is missing. `python -m pipeline gc` removes them."


def _bad_proofs(store: Store) -> Iterator[str]:
    store.storage.fetch_all("verified")
    for path in visible(store.root.glob("verified/*")):
        try:
            found = store.verified_by(path.name)
            stage = store.read(found or "")
        except StoreError as error:
            yield str(error)
            continue
        if path.name not in stage.manifest.inputs.values():
            yield f"proof of snapshot {path.name[:12]}: it names {stage.object_id[:12]}, which did not verify it."


def _bad_erasures(store: Store) -> Iterator[str]:
    """Iterate over what was erased and is here again, receipts that are missing, and records that no receipt names."""
    written: dict[str, dict[str, str]] = {}
    try:
        withdrawn, receipts = frozenset(store.active_withdrawals()), sorted(store.receipts().items())
    except StoreError:  # one more finding of `_bad_logs`
        return
    for receipt, when in receipts:
        try:
            content = store.read(receipt).json(RECEIPT)
        except StoreError as error:
            yield f"receipt of what was erased on {when[:10]}: {error}"
            continue
        for entry in content["rewritten"]:
            written.setdefault(entry["object_id"], {})[entry["file"]] = entry["written"]
        yield from _here_again(store, StoredReceipt(content, withdrawn), when[:10])
    store.storage.fetch_all(ERASED)
    for path in visible(store.root.glob(f"{ERASED}/*")):
        try:
            found = erased_files(store.root, path.name)
        except StoreError as error:
            yield str(error)
            continue
        if found != written.get(path.name):
            yield f"record of what was erased from object {path.name[:12]}: no receipt names it. Erase it again."


def _here_again(store: Store, receipt: StoredReceipt, day: str) -> Iterator[str]:
    for sha256 in receipt.erased("blobs", "refused"):
        for folder, kind in (("blobs", "blob"), ("rejected", "refused blob")):
            if store.storage.has(f"{folder}/{sha256}"):
                yield f"{kind} {sha256[:12]}: it is here again, though erased on {day}. {ERASE_AGAIN}"
    for entry in (each for each in receipt.content["rewritten"] if receipt.is_erased(each["sha256"])):
        path = store.locate(entry["object_id"])
        file = None if path is None else path / entry["file"]
        if file is not None and file.is_file() and file_sha256(file) == entry["sha256"]:
            name = f"file {entry['file']} of object {entry['object_id'][:12]}"
            yield f"{name}: it holds again what was erased on {day}. {ERASE_AGAIN}"


ERASE_AGAIN = "`python -m pipeline withdraw --erase` erases what is withdrawn."
"""The remedy for what is here again."""


def _bad_cache_entries(store: Store) -> Iterator[str]:
    """Iterate over damaged results of the compiler. Whoever finds one ignores it, and compiles again."""
    for path in (path for path in visible(store.root.glob("units/*")) if path.is_file()):
        try:
            entry: dict[str, Any] = parse_json(path.read_bytes())
            is_sound = entry.pop("digest") == digest([path.name, entry])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            is_sound = False
        if not is_sound:
            yield f"compiler result {path.name[:12]}: its bytes changed. The next build compiles that unit again."


_CHECKS = (
    _bad_format,
    _bad_logs,
    _bad_refs,
    Store.bad_keys,
    Store.bad_mark,
    _bad_verdicts,
    _bad_proofs,
    Store.bad_blobs,
    _bad_erasures,
    _bad_cache_entries,
)


def _missing_keys(store: Store, manifests: dict[str, Manifest]) -> Iterator[str]:
    """Iterate over the parts of stages, and shards of parts, without a key: what lists them is stored after the keys of all."""
    parts = {
        part_id
        for manifest in manifests.values()
        for label, part_id in manifest.inputs.items()
        if label.startswith((*PART_LABELS, SHARD_LABEL))
    }
    keys = set(store.storage.names("keys"))
    for name in sorted(parts & manifests.keys()):
        if manifests[name].key not in keys:
            yield str(missing_key(manifests[name].key, name))


def _missing_records(store: Store, manifests: dict[str, Manifest]) -> Iterator[str]:
    """Iterate over the verdicts and proofs that are missing of what a ref was moved to: they are written before it moves."""
    try:
        moved, alone = {entry["new"] for entry in store.entries(PROMOTIONS)}, store.rows_alone()
    except StoreError:
        return
    verdicts, verified = (set(store.storage.names(folder)) for folder in ("verdicts", "verified"))
    for name in sorted(moved & manifests.keys()):
        kind, _, last = manifests[name].kind.partition("/")
        if last == "stage" and f"{name}.json" not in verdicts:
            yield str(missing_verdicts(name, kind))
        if manifests[name].kind == SNAPSHOT_KIND and not (name in alone or name in verified):
            yield f"proof of snapshot {name[:12]}: it is missing. Build it again."
