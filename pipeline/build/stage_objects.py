"""Stage objects in the store: their parts, report and Params, and the chain of stages before them."""

from collections.abc import Callable, Iterator

from pydantic import ValidationError

from pipeline.contracts.gates import gates_of
from pipeline.contracts.stage_report import StageReport
from pipeline.core.errors import StageError
from pipeline.core.params import Params, flat
from pipeline.stages.stages import STAGES, stage_of_kind
from pipeline.store.objects import REPORT, StoredObject
from pipeline.store.refs import LIVE
from pipeline.store.store import Store

PARAMS, FAILURES = "params.json", "failures.json"
"""Files of a stage's object: its parameters, and what each source failed with, where one has."""
_MADE: set[str] = set()


def stage_of(stored: StoredObject) -> str:
    """Return the name of the stage that made an object."""
    return stage_of_kind(stored.manifest.kind)


def parts_of(stored: StoredObject) -> dict[str, str]:
    """Return the parts that a stage's object lists: name -> object id, sorted by name."""
    return _inputs(stored, "part/")


def evidence_of(stored: StoredObject) -> dict[str, str]:
    """Return what a stage's object lists beside its parts, such as its audit: name -> object id, sorted by name."""
    return _inputs(stored, "evidence/")


def report_of(stored: StoredObject) -> StageReport:
    """Read the report of a part or stage."""
    return StageReport(**stored.json(REPORT))


def failures_of(stored: StoredObject) -> dict[str, str]:
    """Return what each source of a stage's object failed with, by name."""
    is_there = any(entry.name == FAILURES for entry in stored.manifest.files)
    return stored.json(FAILURES) if is_there else {}


def mark_made(object_id: str) -> None:
    """Record that this process has just made an object from its inputs."""
    _MADE.add(object_id)


def was_made_here(object_id: str) -> bool:
    """Return whether this process has made an object from its inputs: it need not be made again to be proved."""
    return object_id in _MADE


def chain(store: Store, stage_id: str | None) -> Iterator[StoredObject]:
    """Read a stage's object and those of all stages before it, the last stage first."""
    while stage_id is not None:
        stored = store.read(stage_id)
        yield stored
        stage_id = stored.manifest.inputs.get("previous")


def chain_params(store: Store, stage_id: str | None) -> dict[str, Params]:
    """Read the Params of a stage and of all before it, by stage name."""
    return {stage_of(stored): stage_params(stored) for stored in chain(store, stage_id)}


def stage_params(stored: StoredObject) -> Params:
    """Read the Params that a stage's object was made with. Raises StageError for those of another version of Sluice."""
    name = stage_of(stored)
    try:
        return STAGES[name].params_class().model_validate_json(stored.file(PARAMS).read_bytes())
    except ValidationError as error:
        fault = error.errors()[0]
        raise StageError(
            f"parameters of {name} {stored.object_id[:12]}",
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}",
            "the fields that this version knows",
            "Build again with this version.",
        ) from error


def limits_of(stage: str, params: Params) -> dict[str, float]:
    """Return the limits of a stage's gates that are parameters, by name, and the bands of its drops."""
    named = [gate.limit for gate in gates_of(stage) if isinstance(gate.limit.value, str)]
    bands = params.model_dump().get("drop_bands", {})
    return {str(limit.value): limit.number(params) for limit in named} | flat(bands, "drop_bands")


def all_limits(params_of: Callable[[str], Params]) -> dict[str, float]:
    """Return the limits of all stages' gates that are parameters, by stage and name; `params_of` gives a stage's Params."""
    return {
        f"{stage}.{name}": value for stage in STAGES.names for name, value in limits_of(stage, params_of(stage)).items()
    }


def live_proof(store: Store, corpus: str) -> str | None:
    """Return the verify stage by which the live snapshot of a corpus was promoted: a later build may have judged it otherwise."""
    moves = store.moves(corpus, LIVE)
    return str(moves[-1]["proof"]) if moves and "proof" in moves[-1] else None


def build_proof(store: Store, corpus: str, snapshot_id: str) -> str | None:
    """Return the verify stage by which the last build of a corpus proved a snapshot: one of another corpus may be newer."""
    own = store.ref_text(corpus, STAGES.names[-1])
    is_proof = own is not None and store.locate(own) and snapshot_id in store.read(own).inputs.values()
    return own if is_proof else None


def _inputs(stored: StoredObject, prefix: str) -> dict[str, str]:
    inputs = sorted(stored.manifest.inputs.items())
    return {label.removeprefix(prefix): object_id for label, object_id in inputs if label.startswith(prefix)}
