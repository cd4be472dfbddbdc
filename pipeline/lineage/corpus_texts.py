"""The texts that a vocabulary is trained on: the kept training documents of a built corpus."""

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.build.stages import parts_of
from pipeline.core.errors import MissingError
from pipeline.core.records import Split
from pipeline.store.store import Store
from pipeline.tokenize.vocabulary import TrainedOn


def training_texts(store: Store, corpus: str) -> tuple[list[str], TrainedOn]:
    """The texts of all kept training documents, sorted by document id, and where they are from."""
    stage_id = store.ref(corpus, "normalize")
    if stage_id is None:
        raise MissingError(
            f"corpus {corpus}", "normalize has no output", "", f"Run `build --recipe {corpus} --until normalize`."
        )
    parts = parts_of(store.read(stage_id))
    kept = store.read(parts.pop("duplicates")).table("kept.parquet", ["document_id"])["document_id"]
    tables = []
    for object_id in parts.values():
        table = store.read(object_id).table("documents.parquet", ["document_id", "split", "text"])
        in_training = pc.and_(
            pc.is_in(table["document_id"], value_set=kept), pc.equal(table["split"], Split.TRAIN.value)
        )
        tables.append(table.filter(in_training))
    return pa.concat_tables(tables).sort_by("document_id")["text"].to_pylist(), TrainedOn(corpus, stage_id)


def corpus_texts(store: Store, corpus: str) -> tuple[list[str], list[tuple[list[int], list[int]]]]:
    """The enriched documents of a corpus, and of each its chunks: their starts, as bytes of the text, and their kinds."""
    stage_id = store.ref(corpus, "enrich")
    if stage_id is None:
        raise MissingError(
            f"corpus {corpus}", "enrich has no output", "", f"Run `build --recipe {corpus} --until enrich`."
        )
    columns = ["text", "chunk_starts", "chunk_kinds"]
    parts = sorted(parts_of(store.read(stage_id)).items())
    table = pa.concat_tables([store.read(part).table("enriched.parquet", columns) for _, part in parts])
    texts, starts, kinds = (table[name].to_pylist() for name in columns)
    return texts, list(zip(starts, kinds, strict=True))
