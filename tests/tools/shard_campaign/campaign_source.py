"""Source of the campaign: headers of an installed library as JSON lines, renamed a round, so that none is a copy of another."""

import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from tests.benchmarks.pipeline.large_sources.made_texts import made_texts

_RECIPE = """base = "tiny"
pins = "{pins}"
held_out = []
[collect]
min_shard_bytes = {smallest}
max_shard_bytes = {largest}
"""
_PIN = """[[pin]]
name = "{name}"
kind = "{kind}"
path = "{path}"
sha256 = "{sha256}"
declared_license = "Apache-2.0"
"""


def write_source(path: Path, num_bytes: int, seed: int = 0) -> Path:
    """Write about so many bytes of text as lines, in an order drawn by the seed."""
    top = Path(pa.get_include())
    files = (each for each in sorted(top.rglob("*.h")) if 1_000 <= each.stat().st_size <= 50_000)
    real = {("arrow", str(each.relative_to(top))): each.read_text(encoding="utf-8") for each in files}
    texts = list(made_texts(real, num_bytes, "round"))
    random.Random(seed).shuffle(texts)
    return write_lines(path, texts)


def write_lines(path: Path, texts: Sequence[tuple[str, str]]) -> Path:
    """Write paths and texts as lines."""
    path.write_text("".join(json.dumps({"path": place, "text": text}) + "\n" for place, text in texts))
    return path


def write_recipe(path: Path, pins: Sequence[tuple[str, str, Path]], shard_bytes: int) -> Path:
    """Write a recipe of sources, each a name, a kind and a file, with shards of about so many bytes, and return its path."""
    texts = [
        _PIN.format(name=name, kind=kind, path=file, sha256=hashlib.sha256(file.read_bytes()).hexdigest())
        for name, kind, file in pins
    ]
    listed = path.with_suffix(".pins.toml")
    listed.write_text("\n".join(texts))
    path.write_text(_RECIPE.format(pins=listed, smallest=shard_bytes // 2, largest=shard_bytes))
    return path
