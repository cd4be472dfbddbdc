"""Documented samples: credentials that standards and vendors print as examples, by their digests. They open nothing and stay.

To add one, add its digest to `documented_samples.toml`, which says how it is made.
"""

import hashlib
import re
import tomllib
from importlib.resources import files

_NUM_DIGITS = 24
_FILE = "documented_samples.toml"
_DIGESTS = frozenset(
    digest
    for digests in tomllib.loads(files("pipeline.stages.normalize").joinpath(_FILE).read_text("utf-8")).values()
    for digest in digests
)
_EXAMPLE = re.compile(r"[A-Za-z0-9/+_-]{8}EXAMPLE(?:KEY|TOKEN|ID)?\Z")


def is_documented(value: str) -> bool:
    """Return whether a value is a sample of documentation, by its digest or by the word with which vendors end theirs."""
    parts = value.split(".")
    samples = (value, parts[1]) if len(parts) in (2, 3) else (value,)
    return _EXAMPLE.search(value) is not None or any(_digest(each.rstrip("=")) in _DIGESTS for each in samples)


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:_NUM_DIGITS]
