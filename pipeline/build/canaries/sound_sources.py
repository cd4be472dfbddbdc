"""Sound sources: small made code that passes every gate, in which offenses are planted."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from pipeline.build.recipes import CorpusParams
from pipeline.pins.local_tree import tree_digest
from pipeline.pins.pins import SourcePin
from pipeline.stages.collect.kinds.local import LocalPin
from pipeline.stages.collect.params import CollectParams
from pipeline.stages.enrich.params import SyntaxParams
from pipeline.stages.normalize.params import DecontaminationParams, DuplicateParams, FilterParams, LicenseParams

SOUND, SOUND_HELD_OUT = "canary-sound", "canary-sound-held-out"
NUM_SOUND_FILES, NUM_SOUND_DOCUMENTS = 8, 6
"""Files of both sources, and documents that are left of them without the copies: three of each."""
_NUM_BYTES, _FEW_BYTES = 1_200, 600
_INCLUDES = '#include "{}.h"\n'
_NOUNS = ("price", "weight", "length", "distance", "duration", "voltage", "pressure", "volume")
_FUNCTION = """\
// Return the {name} {noun} number {number}.
double {verb}_{name}_{noun}_{number}(const std::vector<double>& {noun}s, double {name}) {{
    double total = {number};
    for (double {noun} : {noun}s) {{
        total += {noun} * {name} / {divisor};
    }}
    return total;
}}

"""
_VERBS = ("collect", "measure", "compare", "combine", "reduce", "convert")


def by_own_limits(params: CorpusParams, **changes: Any) -> CorpusParams:
    """Return Params with the limits that made files are written for, and these changes.

    A recipe's limits may drop any file, and prove nothing by that. Its switches and the limits of its gates stay.
    """
    rules = {
        "filters": FilterParams(),
        "licenses": LicenseParams(),
        "duplicates": DuplicateParams(),
        "decontamination": DecontaminationParams(),
    }
    own = {
        "collect": CollectParams(),
        "normalize": params.normalize.model_copy(update=rules),
        "enrich": params.enrich.model_copy(update={"syntax": SyntaxParams()}),
    }
    return params.model_copy(update={**own, **changes})


def write_sound_sources(folder: Path) -> tuple[SourcePin, ...]:
    """Write the sources below a folder, and return their pins."""
    trees = {
        SOUND: {
            "first.cpp": _INCLUDES.format("second") + sound_code("first", _NUM_BYTES),
            "second.h": sound_code("second", _FEW_BYTES),
            "third.c": _c_code("third"),
        },
        SOUND_HELD_OUT: {
            "fourth.cpp": _INCLUDES.format("sixth") + sound_code("fourth", _NUM_BYTES),
            "sixth.h": sound_code("sixth", _FEW_BYTES),
            "seventh.c": _c_code("seventh"),
        },
    }
    trees[SOUND]["first_copy.cpp"] = trees[SOUND]["first.cpp"]
    trees[SOUND_HELD_OUT]["fourth_copy.cpp"] = trees[SOUND_HELD_OUT]["fourth.cpp"]
    for name, files in trees.items():
        (folder / name).mkdir(parents=True)
        for path, text in files.items():
            (folder / name / path).write_text(text)
    return tuple(local_pin(name, folder / name) for name in sorted(trees))


def local_pin(name: str, path: Path) -> LocalPin:
    """Return the pin of a folder of canaries."""
    return LocalPin(name=name, path=path, digest=tree_digest(path), declared_license="MIT")


def sound_code(name: str, num_bytes: int) -> str:
    """Make functions of ordinary C++ that differ from those of any other name."""
    functions = _functions(name)
    text = "#include <vector>\n\n"
    while len(text) < num_bytes:
        text += next(functions)
    return text


def _functions(name: str) -> Iterator[str]:
    for number in count():
        noun, verb = _NOUNS[number % len(_NOUNS)], _VERBS[number % len(_VERBS)]
        yield _FUNCTION.format(name=name, noun=noun, verb=verb, number=number, divisor=number + 2)


def _c_code(name: str) -> str:
    lines = [f"static int {name}_{noun}(int {noun}) {{ return {noun} * {len(noun)} + {name}; }}" for noun in _NOUNS]
    return f"static int {name} = 3;\n" + "\n".join(lines) + "\n"
