"""SOURCE_KINDS: the registry of the kinds of source, by the value of `kind` in a pin.

A kind that a program registers exists in its process only, so it is collected with one worker.
"""

from typing import Any

from pipeline.core.registry import Registry
from pipeline.stages.collect.kinds import archive, git, jsonl, local, sdist
from pipeline.stages.collect.kinds.source_kind import SourceKind

SOURCE_KINDS: Registry[SourceKind[Any]] = Registry(
    "source kind", sdist.KIND, archive.KIND, git.KIND, local.KIND, jsonl.KIND, is_in_parts=True
)
