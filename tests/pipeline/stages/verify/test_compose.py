"""The composed snapshot: totals of its sources, and the licenses of the documents that deduplication kept."""

from typing import Any

from pipeline.contracts.part import PartJob
from pipeline.core.params import Params, canonical_json
from pipeline.formats.snapshot_json import SNAPSHOT_FILE
from pipeline.stages.verify.compose import compose
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store


def test_a_snapshot_is_composed_of_what_its_inputs_hold_and_nothing_else(tiny_store: Store) -> None:
    snapshot = open_snapshot(tiny_store, tiny_store.ref("tiny", "live") or "")
    identity = {name: snapshot.content[name] for name in ("vocabulary", "row_length", "pins", "held_out")}
    weights = {source.name: source.weight for source in snapshot.sources}
    inputs: dict[str, Any] = {
        label: tiny_store.read(object_id) for label, object_id in snapshot.stored.manifest.inputs.items()
    }
    output = compose(PartJob("snapshot", Params(), inputs, {**identity, "weights": weights}, {}))

    assert output.files[SNAPSHOT_FILE] == canonical_json(snapshot.content)
    assert output.report.rows_out == sum(source.num_documents for source in snapshot.sources)
    assert all(sum(source.licenses.values()) == source.num_documents for source in snapshot.sources)
