"""Index of a source as it may be stored: what quotes the source, its compile database or a tool's message is scrubbed.

The compiler reads definitions and folders as they are; nothing but the build context stores them.
"""

import json
from dataclasses import replace

from pipeline.stages.enrich.compiler.compiler_index import CompilerIndex, FileIndex
from pipeline.stages.enrich.compiler.local_paths import TREE_KEYS
from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.shown_text import ShownText


def scrub_index(index: CompilerIndex) -> None:
    """Replace the contexts, details and notes of an index by what may be stored and shown of them."""
    text = ShownText(ScrubParams())
    contexts = {file.context for file in index.files.values() if file.context is not None}
    shown = {context: _shown_context(context, text) for context in sorted(contexts)}
    index.files = {
        path: _shown_file(file, None if file.context is None else shown[file.context], text)
        for path, file in index.files.items()
    }
    index.notes = [text.shown(note) for note in index.notes]


def _shown_file(file: FileIndex, context: str | None, text: ShownText) -> FileIndex:
    return replace(file, context=context, detail=text.shown(file.detail) if file.detail else "")


def _shown_context(context: str, text: ShownText) -> str:
    """Return a context with each of its values scrubbed; those that are names within the source, as names are."""
    values = {}
    for key, value in json.loads(context).items():
        shown = text.name if key in TREE_KEYS else text.shown
        values[key] = shown(value) if isinstance(value, str) else list(map(shown, value))
    return json.dumps(values, sort_keys=True, ensure_ascii=False)
