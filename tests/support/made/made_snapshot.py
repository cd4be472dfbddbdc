"""A snapshot of made rows, for a training where nothing is built: the rows of `made_rows` under the smallest vocabulary.

python -m tests.support.made.made_snapshot STORE      makes it live, as corpus `made`, and prints its id
"""

import sys
import tomllib
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc

from pipeline.core.params import canonical_json
from pipeline.formats.snapshot_json import SNAPSHOT_FILE, SNAPSHOT_FORMAT, SNAPSHOT_KIND
from pipeline.stages.tokenize.vocabulary import VOCABULARIES
from pipeline.store.store import Store
from tests.support.made.made_rows import T, rows_of

CORPUS = "made"
NUM_ROWS_TRAIN, NUM_ROWS_HELD_OUT = 32, 8
VOCABULARY = VOCABULARIES / "tiny-1024"


def commit_made(store: Store, num_copies: int = 1, num_files: int = 1) -> str:
    """Commit the snapshot, make it live and candidate, and return its id. What is there already stays.

    More copies of its rows are bytes to move, of which its counts say nothing. Training rows may be in several files.
    """
    tables = {"train": rows_of(NUM_ROWS_TRAIN, 100), "held_out": rows_of(NUM_ROWS_HELD_OUT, 800)}
    tables["train"] = pa.concat_tables([tables["train"]] * num_copies)
    with store.writer(CORPUS, "made rows") as scratch:
        rows, snapshot = scratch / "rows", scratch / "snapshot"
        rows.mkdir()
        snapshot.mkdir()
        _write(tables["held_out"], rows / "rows_held_out.arrow")
        share = -(-tables["train"].num_rows // num_files)
        for number in range(num_files):
            name = f"rows_train-{number:04}.arrow" if num_files > 1 else "rows_train.arrow"
            _write(tables["train"].slice(number * share, share), rows / name)
        rows_id = store.commit(rows, "tokenize/part", {"made": True}, {})
        for name in ("tokenizer.json", "vocabulary.toml"):
            (snapshot / name).write_bytes((VOCABULARY / name).read_bytes())
        (snapshot / SNAPSHOT_FILE).write_bytes(canonical_json(_content(rows_id)))
        snapshot_id = store.commit(snapshot, SNAPSHOT_KIND, {"made": True}, {f"rows/{CORPUS}": rows_id})
    for ref in ("candidate", "live"):
        store.move_ref(CORPUS, ref, store.ref(CORPUS, ref), snapshot_id, "made rows")
    return snapshot_id


def commit_extended(store: Store, num_more: int) -> str:
    """Commit the made snapshot under a vocabulary of more ids, which begins with that of the other, and return its id."""
    made = store.read(commit_made(store))
    tokenizer, content = made.json("tokenizer.json"), made.json(SNAPSHOT_FILE)
    spellings, merges = tokenizer["model"]["vocab"], tokenizer["model"]["merges"]
    for number in range(num_more):
        pair = [spelling for spelling, _ in sorted(spellings.items(), key=lambda item: item[1])][-2:]
        merges.append([pair[1], pair[0] + str(number)])
        spellings[f"{pair[1]}{pair[0]}{number}"] = len(spellings)
    content["vocabulary"] |= {"size": len(spellings), "sha256": "e" * 64, "name": "extended"}
    with store.writer(CORPUS, "a larger vocabulary") as scratch:
        folder = scratch / "extended"
        folder.mkdir()
        (folder / "vocabulary.toml").write_bytes(made.file("vocabulary.toml").read_bytes())
        (folder / "tokenizer.json").write_bytes(canonical_json(tokenizer))
        (folder / SNAPSHOT_FILE).write_bytes(canonical_json(content))
        return store.commit(folder, SNAPSHOT_KIND, {"made": num_more}, dict(made.manifest.inputs))


def _content(rows_id: str) -> dict[str, object]:
    facts = tomllib.loads((VOCABULARY / "vocabulary.toml").read_text(encoding="utf-8"))
    num_tokens = 20 * (NUM_ROWS_TRAIN + NUM_ROWS_HELD_OUT)
    source = {
        "name": CORPUS,
        "rows": rows_id,
        "weight": 1.0,
        "num_documents": NUM_ROWS_TRAIN + NUM_ROWS_HELD_OUT,
        "num_tokens": num_tokens,
        "num_text_bytes": 2 * num_tokens,
        "num_rows_train": NUM_ROWS_TRAIN,
        "num_rows_held_out": NUM_ROWS_HELD_OUT,
        "licenses": {},
    }
    vocabulary = {name: facts[name] for name in ("name", "sha256", "size", "specials")}
    return {
        "format_version": SNAPSHOT_FORMAT,
        "sources": [source],
        "vocabulary": vocabulary,
        "row_length": T,
        "pins": {},
        "held_out": [],
    }


def _write(table: pa.Table, path: Path) -> None:
    with ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


if __name__ == "__main__":
    print(commit_made(Store(Path(sys.argv[1]))))
