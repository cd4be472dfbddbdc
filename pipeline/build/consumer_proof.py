"""Proof that the consumer runs on a snapshot: that of the build if the same consumer is installed now, otherwise one made now."""

import json

from pipeline.build.engines.part_task import measured
from pipeline.build.stage_objects import parts_of, stage_of, stage_params
from pipeline.contracts.part import PartJob
from pipeline.core.declared import load_declared
from pipeline.core.params import canonical_json
from pipeline.stages.stages import STAGES
from pipeline.stages.verify.consumer import CONSUMER_FIELD, CONSUMER_PARTS, consumer_identity
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store


def consumer_measures(store: Store, verify: StoredObject) -> dict[str, float]:
    """Return the measures of the consumer that is installed now, or none where the stored ones are of the same consumer.

    Raises StageError for a consumer that crashes or hangs.
    """
    stage, installed = STAGES[stage_of(verify)], json.loads(canonical_json(consumer_identity()))
    fresh: dict[str, float] = {}
    for name, part_id in parts_of(verify).items():
        stored = store.read(part_id)
        identity = stored.manifest.identity
        # By the names of the parts: one that does not say whose proof it is proves nothing.
        is_proof = CONSUMER_FIELD in identity or name in CONSUMER_PARTS
        if not is_proof or identity.get(CONSUMER_FIELD) == installed:
            continue
        kind = stage.part_kind(identity["function"])
        inputs = {label: store.read(object_id) for label, object_id in stored.manifest.inputs.items()}
        job = PartJob(identity["name"], stage_params(verify), inputs, identity, {"store": store.root})
        output = load_declared(f"part {job.name}", "function", kind.functions[identity["function"]])(job)
        fresh |= measured(job, output, kind.measure).report.measures
    return fresh
