"""Evidence of a report: what was judged and when, tokens and what read their text, canaries, and the build before."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from pipeline.build.seen_red import CANARIES_PART
from pipeline.build.stage_objects import parts_of, report_of
from pipeline.contracts.gates_seen import CANARIES
from pipeline.core.errors import SluiceError
from pipeline.core.records import Provenance
from pipeline.core.table_names import ENRICHED, TOKENS
from pipeline.lineage.diff import difference
from pipeline.lineage.queries import QueryRow
from pipeline.lineage.stored_build import StoredBuild, stored_build
from pipeline.stages.normalize.scrub.credentials.random_literals import LEFT_BECAUSE_WORDS, LeftBecause, left_literals
from pipeline.store.refs import LAST
from pipeline.store.snapshot import REFS

_NUM_DOCUMENTS = 12
_COUNTED = ("num_documents", "num_tokens", "num_text_bytes", "num_rows_train", "num_rows_held_out")


def gate_rows(build: StoredBuild) -> Iterator[QueryRow]:
    """Yield the verdict of each gate that the build was judged by, in the order of the stages, with the time."""
    for stage, stored in build.stages.items():
        judged = build.store.verdicts(stored.object_id) or {"verdicts": [], "when": ""}
        yield from ({**verdict, "stage": stage, "when": judged["when"]} for verdict in judged["verdicts"])


def token_rows(build: StoredBuild) -> Iterator[QueryRow]:
    """Yield by source the documents, tokens and rows of each split, and the bytes by what has read their structure."""
    enriched = build.parts_with(ENRICHED)
    for name, part in build.parts_with(TOKENS).items():
        counts = report_of(part).measures
        read = report_of(enriched[name]).measures
        lanes = {each.value: int(read.get(f"num_bytes_{each.value}", 0)) for each in Provenance}
        yield {"source": name, **{each: int(counts.get(each, 0)) for each in _COUNTED}, "lanes": lanes}


def left_rows(texts: Iterable[tuple[str, str, str]], num_places: int) -> Iterator[QueryRow]:
    """Yield by reason how many random literals of texts are left, in how many files, and the first places.

    A text has its source and its path before it. No literal is quoted.
    """
    counts, files = Counter[LeftBecause](), Counter[LeftBecause]()
    places: dict[LeftBecause, list[str]] = {reason: [] for reason in LeftBecause}
    for source, path, text in texts:
        left = list(left_literals(text))
        counts.update(reason for _, reason in left)
        files.update({reason for _, reason in left})
        for line, reason in left:
            places[reason] += [f"{source}/{path}:{line}"] * (len(places[reason]) < num_places)
    for reason in filter(counts.__getitem__, LeftBecause):
        found = {"num_literals": counts[reason], "num_files": files[reason], "places": places[reason]}
        yield {"reason": LEFT_BECAUSE_WORDS[reason], **found}


def canary_rows(build: StoredBuild) -> Iterator[QueryRow]:
    """Yield the planted offenses of the build by what they are sent to, with the number that was caught and the names of others."""
    part = parts_of(build.reached).get(CANARIES_PART) if build.reached is not None else None
    groups: dict[str, dict[str, bool]] = {}
    for name, is_caught in (build.store.read(part).json(CANARIES) if part else {}).items():
        group, _, offense = name.rpartition("/")
        groups.setdefault(group or name, {})[offense] = is_caught
    for group, caught in sorted(groups.items()):
        missed = sorted(name for name, is_caught in caught.items() if not is_caught)
        yield {"sent_to": group, "num_sent": len(caught), "num_caught": len(caught) - len(missed), "missed": missed}


def change_since(build: StoredBuild) -> dict[str, Any] | None:
    """Compare the build with the one before: the newest other snapshot that was live or a candidate, if one can be read."""
    history = build.store.history(build.corpus)
    newest_first = [entry["new"] for entry in reversed(history) if entry["ref"] in REFS and entry["new"]]
    if (
        build.of != LAST and build.snapshot_id in newest_first
    ):  # the last build is after all of them, and may make an older one
        newest_first = newest_first[newest_first.index(build.snapshot_id) :]
    for snapshot_id in dict.fromkeys(each for each in newest_first if each != build.snapshot_id):
        try:
            return difference(stored_build(build.store, build.corpus, snapshot_id), build, _NUM_DOCUMENTS).as_json()
        except SluiceError:  # collected by gc, or made by another version
            continue
    return None
