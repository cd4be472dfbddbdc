"""Croissant JSON-LD of a snapshot: its files with their digests, and every column of its tables.

The files have the paths that `export huggingface` gives them. Source: the Croissant format
specification 1.0, MLCommons.
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from pipeline.core.records import PackedRow
from pipeline.core.schema import arrow_schema
from pipeline.export.card import Facts
from pipeline.export.documents_view import documents_schema
from pipeline.export.view_files import DOCUMENTS_FOLDER, FOLDERS, ViewFile, view_files
from pipeline.lexing.languages import titles

_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_PARQUET = "application/x-parquet"
_DOCUMENTS = "A document: its token ids, columns of the same length, its text, where it is from, and the evidence of its license."


def croissant(facts: Facts, files: Sequence[ViewFile] | None = None) -> dict[str, Any]:
    """Build the description, to be written as JSON; without `files`, of the view that an export would write."""
    snapshot = facts.snapshot
    if files is None:
        with TemporaryDirectory() as folder:
            files = view_files(snapshot, Path(folder))
    folders = [name for name in (DOCUMENTS_FOLDER, *FOLDERS.values()) if any(file.folder == name for file in files)]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"sluice-{snapshot.snapshot_id[:12]}",
        "description": f"{titles()} source as tokens and packed rows, with the structure of every token.",
        "version": "1.0.0",
        "identifier": f"sha256:{snapshot.snapshot_id}",
        "datePublished": facts.when[:10],
        "license": list(snapshot.licenses),
        "url": f"urn:sha256:{snapshot.snapshot_id}",
        "citeAs": f"Sluice snapshot {snapshot.snapshot_id}",
        "distribution": [*map(_file_object, files), *map(_file_set, folders)],
        "recordSet": [_record_set(folder) for folder in folders],
    }


def _file_object(file: ViewFile) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": file.path,
        "name": file.path,
        "contentUrl": file.path,
        "contentSize": f"{file.num_bytes} B",
        "encodingFormat": _PARQUET,
        "sha256": file.sha256,
    }


def _file_set(folder: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": folder,
        "name": folder,
        "encodingFormat": _PARQUET,
        "includes": f"{folder}/*.parquet",
    }


def _record_set(folder: str) -> dict[str, Any]:
    name, is_packed = f"{folder}/records", folder != DOCUMENTS_FOLDER
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": " ".join((PackedRow.__doc__ or "").split()) if is_packed else _DOCUMENTS,
        "field": [
            _field(folder, name, column) for column in (arrow_schema(PackedRow) if is_packed else documents_schema())
        ],
    }


def _field(folder: str, record_set: str, column: pa.Field) -> dict[str, Any]:
    is_list = pa.types.is_large_list(column.type)
    return {
        "@type": "cr:Field",
        "@id": f"{record_set}/{column.name}",
        "name": f"{record_set}/{column.name}",
        "dataType": _data_type(column.type.value_type if is_list else column.type),
        **({"repeated": True} if is_list else {}),
        "source": {"fileSet": {"@id": folder}, "extract": {"column": column.name}},
    }


def _data_type(arrow: pa.DataType) -> str:
    if pa.types.is_integer(arrow):
        return "sc:Integer"
    if pa.types.is_floating(arrow):
        return "sc:Float"
    return "sc:Boolean" if pa.types.is_boolean(arrow) else "sc:Text"
