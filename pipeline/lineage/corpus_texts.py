"""Texts of a built corpus: those that a vocabulary is trained on, and those that it is evaluated on."""

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.build.stage_objects import parts_of
from pipeline.core.errors import MissingError
from pipeline.core.records import Split
from pipeline.core.table_names import DOCUMENTS, ENRICHED, KEPT
from pipeline.store.store import Store
from pipeline.tokenize.vocabulary import TrainedOn


def training_texts(store: Store, corpus: str) -> tuple[list[str], TrainedOn]:
    """Return the texts of all kept training documents, sorted by document id, and the object that they are from."""
    stage_id = _stage_id(store, corpus, "normalize")
    parts = parts_of(store.read(stage_id))
    kept = store.read(parts.pop("duplicates")).table(KEPT, ["document_id"])["document_id"]
    tables = []
    for object_id in parts.values():
        table = store.read(object_id).table(DOCUMENTS, ["document_id", "split", "text"])
        in_training = pc.and_(
            pc.is_in(table["document_id"], value_set=kept), pc.equal(table["split"], Split.TRAIN.value)
        )
        tables.append(table.filter(in_training))
    return pa.concat_tables(tables).sort_by("document_id")["text"].to_pylist(), TrainedOn(corpus, stage_id)


def corpus_texts(store: Store, corpus: str) -> tuple[list[str], list[tuple[list[int], list[int]]]]:
    """Return the texts of the enriched documents, and of each its chunks: their starts in bytes, and their kinds."""
    columns = ["text", "chunk_starts", "chunk_kinds"]
    parts = sorted(parts_of(store.read(_stage_id(store, corpus, "enrich"))).items())
    table = pa.concat_tables([store.read(part).table(ENRICHED, columns) for _, part in parts])
    texts, starts, kinds = (table[name].to_pylist() for name in columns)
    return texts, list(zip(starts, kinds, strict=True))


def _stage_id(store: Store, corpus: str, stage: str) -> str:
    found = store.ref(corpus, stage)
    if found is None:
        remedy = f"Run `build --recipe {corpus} --until {stage}`."
        raise MissingError(f"corpus {corpus}", f"{stage} has no output", "", remedy)
    return found
