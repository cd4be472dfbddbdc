"""Canaries in files, made at run time and sent through the stages in memory, and in archives, sent to a scratch store.

Each is a file of a made source and the outcome that it must have. One that is missed means that a rule no longer works, whatever
the corpus is. To add one, add it to `_plant()`; the example of a detector is there by itself.
"""

import hashlib
import io
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from pipeline.build.audit import request_facts
from pipeline.build.build import BuildRequest, open_build
from pipeline.build.build_context import BuildContext, judged
from pipeline.build.canaries.memory_build import MemoryBuild
from pipeline.build.canaries.sound_sources import by_own_limits, local_pin, sound_code
from pipeline.build.recipes import CorpusParams
from pipeline.contracts.part import DUPLICATES_PART
from pipeline.core.table_names import DOCUMENTS, DROPPED, DUPLICATES
from pipeline.pins.decisions import Decision
from pipeline.pins.held_out import HeldOut
from pipeline.pins.pins import SourcePin
from pipeline.stages.collect.kinds.archive import ArchivePin
from pipeline.stages.normalize.contamination.evaluation_items import shipped_items
from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.detectors import DETECTORS
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store

_KEPT = "kept"
_CLOUD_KEY = "AKIA" + "QWERTYUIOPASDFGH"
_ADDRESS = "grace.hopper" + "@compilers.navy.mil"
_BYTES_BEFORE = (3_000, 30_000)
"""Bytes before what is planted late: it is in no head of a file."""
_DECIDED = "canary-decided"
_CONTROL, _SOUND_ARCHIVE, _WRONG_DIGEST = "canary-control", "canary-control-archive", "canary-wrong-digest"
CONTROLS = frozenset({f"{_CONTROL}/kept.cpp", f"{_CONTROL}/changed.cpp", _SOUND_ARCHIVE})
"""Canaries that must not be caught: a file that is dropped for no reason, one that lacks what is looked for, a sound archive."""
CanaryRow = Mapping[str, Any]


@dataclass(frozen=True)
class Canary:
    """A planted file: `kept` or the drop reasons that it may end with, and what must hold for its document or its drop.

    `stored_path` is the path of its row where that must be another, after which it is called then.
    """

    source: str
    path: str
    content: bytes
    outcomes: Sequence[str] = (_KEPT,)
    check: Callable[[CanaryRow], bool] = lambda document: True
    stored_path: str = ""

    @property
    def name(self) -> str:
        return f"{self.source}/{self.stored_path or self.path}"


def planted(params: CorpusParams) -> frozenset[str]:
    """Return the names of all files and archives that a build with those Params must send."""
    detectors = {f"canary-secrets/{each.name}.cpp" for each in DETECTORS if each.is_on(params.normalize.scrub)}
    files = {canary.name for canary in _plant(params.normalize.scrub)}
    return frozenset({*detectors, *files, *_archives(), _WRONG_DIGEST} | CONTROLS)


def send_files(root: Path, params: CorpusParams) -> dict[str, bool]:
    """Send the planted files, and return of each by name whether it had its outcome."""
    canaries = _plant(params.normalize.scrub)
    for canary in canaries:
        path = root / "trees" / canary.source / canary.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(canary.content)
    sources = sorted({canary.source for canary in canaries})
    pins = tuple(local_pin(name, root / "trees" / name) for name in sources)
    build = MemoryBuild(by_own_limits(params, held_out=HeldOut()), pins, root, decisions=_decisions())
    build.run("normalize")
    outcomes = _outcomes(build)
    return {canary.name: _is_caught(canary, outcomes) for canary in canaries}


def send_archives(root: Path, params: CorpusParams) -> dict[str, bool]:
    """Send archives: a hostile one must fail its source, block the stage, and write nothing outside the store; a sound one not."""
    root.mkdir(parents=True)
    pins: list[SourcePin] = []
    for name, content in _archives().items():
        path = root / f"{name}.tar"
        path.write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        pins.append(ArchivePin(name=name, path=path, sha256=sha256, declared_license="MIT"))
    wrong = pins[0].model_copy(update={"name": _WRONG_DIGEST, "sha256": "0" * 64})
    ordered = tuple(sorted((*pins, wrong), key=lambda pin: pin.name))
    with open_build(BuildRequest("canaries", params, ordered, "canaries"), Store(root / "store")) as build:
        stage = STAGES["collect"]
        output, verdicts = judged(stage, BuildContext(stage, build, None), request_facts(ordered, params))
    is_blocked = any(verdict.blocking and not verdict.passed for verdict in verdicts)
    return {pin.name: is_blocked and pin.name in output.failures for pin in (*pins, wrong)}


def _outcomes(build: MemoryBuild) -> dict[str, tuple[str, CanaryRow]]:
    parts = build.parts("normalize")
    lost = {f"{row['source']}/{row['path']}": row["reason"] for row in parts.pop(DUPLICATES_PART).rows(DUPLICATES)}
    outcomes: dict[str, tuple[str, CanaryRow]] = {}
    for part in parts.values():
        for row in part.rows(DROPPED):
            outcomes[f"{row['source']}/{row['path']}"] = (row["reason"], row)
        for row in part.rows(DOCUMENTS):
            name = f"{row['source']}/{row['path']}"
            outcomes[name] = (lost.get(name, _KEPT), row)
    return outcomes


def _is_caught(canary: Canary, outcomes: Mapping[str, tuple[str, CanaryRow]]) -> bool:
    if canary.name not in outcomes:
        return False
    outcome, document = outcomes[canary.name]
    return outcome in canary.outcomes and canary.check(document)


def _plant(scrub: ScrubParams) -> list[Canary]:
    return [
        *_secrets(scrub),
        *_licenses(),
        *_encodings(),
        *_blobs(),
        *_twins(),
        *_amalgamations(),
        *_relabeled(),
        *_evaluation(),
        *_decided(),
        Canary(_CONTROL, "kept.cpp", _code("kept"), ("undecodable",)),
        Canary(_CONTROL, "changed.cpp", _code("changed"), check=_with(_CLOUD_KEY)),
    ]


def _secrets(scrub: ScrubParams) -> list[Canary]:
    """Make a file for each detector that is on, of its example, and more for vendors and places."""
    examples = {each.name: each.example for each in DETECTORS if each.is_on(scrub)}
    token, _ = _tokens()
    late = (_CLOUD_KEY, _ADDRESS) if scrub.redact_emails else (_CLOUD_KEY,)
    more = {
        "cloud_key": (f"/* {_CLOUD_KEY} */\n", (_CLOUD_KEY,)),
        "forge_token": (f"/* {token} */\n", (token,)),
        "include": (f'#include "{token}/first.h"\n', (token,)),
    }
    planted = {name: (each.text, each.whole_values) for name, each in examples.items()} | more
    return [
        *(
            Canary("canary-secrets", f"{name}.cpp", _code(name, head), check=_without(*values))
            for name, (head, values) in planted.items()
        ),
        *(Canary("canary-secrets", f"after_{size}.cpp", _late(size), check=_without(*late)) for size in _BYTES_BEFORE),
        *(_in_path(path, value) for path, value in ((f"{token}/file.cpp", token), (f"{_CLOUD_KEY}.cpp", _CLOUD_KEY))),
    ]


def _in_path(path: str, secret: str) -> Canary:
    """Make a file that must be dropped for the secret in its path, and be called by the path's digest."""
    stored = f"withheld-path-sha256:{hashlib.sha256(path.encode()).hexdigest()}"
    content = _code(f"in_path_{len(path)}")
    return Canary("canary-secrets", path, content, ("unscrubbable",), _quotes_no(secret), stored)


def _late(num_bytes: int) -> bytes:
    """Make code with a secret and an address between so many bytes of it and more."""
    before, after = sound_code(f"late_{num_bytes}", num_bytes), sound_code(f"end_{num_bytes}", 1)
    return f"{before}/* {_CLOUD_KEY} {_ADDRESS} */\n{after}".encode()


def _licenses() -> list[Canary]:
    def tagged(path: str, expression: str, *outcomes: str) -> Canary:
        tag = "SPDX-License-" + f"Identifier: {expression}"
        return Canary("canary-licenses", path, _code(path, f"// {tag}\n"), outcomes, _quotes_no(_CLOUD_KEY))

    refused = ("license_refused", "license_unknown", "license_quarantined")
    return [
        tagged("copyleft.cpp", "GPL-3.0-only", *refused),
        tagged("no_exception.cpp", "MIT WITH Apache-2.0", *refused),
        tagged("wrong_exception.cpp", "MIT WITH LLVM-exception", *refused),
        tagged("unknown.cpp", "MIT/Example", *refused),
        tagged("reference.cpp", "LicenseRef-Proprietary", *refused),
        tagged("both.cpp", "MIT AND GPL-2.0-only", *refused),
        tagged("secret.cpp", f"MIT AND {_CLOUD_KEY}", *refused),
        tagged("either.cpp", "MIT OR GPL-2.0-only", _KEPT),
        Canary("canary-licenses", "third_party/vendored.cpp", _code("vendored"), refused),
    ]


def _encodings() -> list[Canary]:
    accents = "// caf\u00e9, na\u00efve, r\u00e9sum\u00e9, d\u00e9j\u00e0 vu, fen\u00eatre, \u00e9t\u00e9, h\u00f4tel\n"
    latin, wide = (accents + _code(name).decode() for name in ("latin", "wide"))
    has_accents = _with("caf\u00e9")
    with_returns = _code("returns").replace(b"\n", b"\r\n")
    return [
        Canary("canary-encodings", "latin.cpp", latin.encode("cp1252"), check=has_accents),
        Canary("canary-encodings", "wide.cpp", wide.encode("utf-16"), check=has_accents),
        Canary("canary-encodings", "marked.cpp", b"\xef\xbb\xbf" + _code("marked"), check=_without("\ufeff")),
        Canary("canary-encodings", "returns.cpp", with_returns, check=_without("\r")),
        Canary("canary-encodings", "damaged.cpp", _damaged(latin), ("undecodable",)),
        Canary("canary-encodings", "twice.cpp", latin.encode().decode("cp1252").encode(), ("undecodable",)),
        Canary("canary-encodings", "misread.cpp", latin.encode("cp1252").decode("cp1251").encode(), ("undecodable",)),
        Canary("canary-encodings", "binary.cpp", b"\x7fELF\x00\x01\x02" * 100, ("binary",)),
    ]


def _damaged(text: str) -> bytes:
    """Make UTF-8 of which one character has lost its second byte."""
    return text.encode().replace("\u00e9".encode(), b"\xc3", 1)


def _blobs() -> list[Canary]:
    """Make data in the form of code, one for each filter that drops it."""
    values = hashlib.shake_256(b"blobs").hexdigest(1_600)
    words = [values[at : at + 8] for at in range(0, len(values), 8)]
    numbers = "const unsigned numbers[] = {\n" + "".join(f"    0x{word},\n" for word in words[:100]) + "};\n"
    strings = "const char *text =\n" + "".join(f'    "{word} is a word of a text\\n"\n' for word in words[:50]) + ";\n"
    rows = (
        "Row rows[] = {\n" + "".join(f'    {{ "{word}", N_{word}, {at} }},\n' for at, word in enumerate(words)) + "};\n"
    )
    script = "".join(f"def f_{word}(self):\n    return '{word}' if self else None\n" for word in words[:30])
    tables = "".join(f"static const int yy{name}[] = {{ 1, 2 }};\n" for name in ("pact", "defact", "table", "check"))
    lines = [f"    argument_{word} = other_{word} + {at};" for at, word in enumerate(words)]
    said = "".join(f" * {word} says that {other} is no {word}.\n" for word, other in pairwise(words))
    planted = {
        "few.c": ("int few;\n", "too_small"),
        "line.c": (" ".join(lines[:60]) + "\n" + "\n".join(lines), "long_line"),
        "mean.c": ("\n".join(" ".join(lines[at : at + 16]) for at in range(0, 160, 16)), "long_mean_line"),
        "signs.c": (
            "".join(f"(({'-' * (at % 40)}*&)) /* {'=' * (at % 37)} */;\n" for at in range(80)),
            "few_alphanumerics",
        ),
        "repeated.c": (lines[0] + ("\n" + lines[1]) * 200, "repeated_lines"),
        "comments.c": (f"/*\n{said} */\n{lines[0]}\n", "mostly_comments"),
        "single.c": (
            "/* This file is an amalgamation of the sources of a project. */\n" + "\n".join(lines),
            "amalgamation",
        ),
        "encoded.c": (
            "const char *data =\n" + "".join(f'    "{values[at : at + 64]}"\n' for at in range(0, 3_200, 64)) + ";\n",
            "encoded_data",
        ),
        "view.h": (
            "@interface View : NSObject\n@property(nonatomic) double opacity;\n- (void)fade;\n@end\n"
            + "\n".join(lines[:40]),
            "objective_c",
        ),
        "numbers.c": (numbers, "numeric_data"),
        "strings.c": (strings, "string_data"),
        "rows.c": (rows, "tabular"),
        "script.c": (script, "foreign_language"),
        "parser.c": (tables + _code("parser").decode(), "generated"),
    }
    return [Canary("canary-blobs", path, text.encode(), (outcome,)) for path, (text, outcome) in planted.items()]


def _twins() -> list[Canary]:
    """Make pairs between sources: exact Jaccard 0.72 and 0.68, on both sides of the threshold of 0.7, and an equal one."""
    return [
        Canary("canary-originals", "near.cpp", _statements("near")),
        Canary("canary-twins", "near_copy.cpp", _statements("near", 32), ("near_duplicate",)),
        Canary("canary-originals", "far.cpp", _statements("far")),
        Canary("canary-twins", "far_copy.cpp", _statements("far", 38)),
        Canary("canary-originals", "same.cpp", _code("same")),
        Canary("canary-twins", "same_copy.cpp", _code("same"), ("exact_duplicate",)),
    ]


def _amalgamations() -> list[Canary]:
    """Make files that one file joins, and one that a larger file contains. What is dropped is the joint file, and the contained."""
    first, second, part, rest = (_code(name) for name in ("first", "second", "part", "rest"))
    return [
        Canary("canary-originals", "first.cpp", first),
        Canary("canary-originals", "second.cpp", second),
        Canary("canary-twins", "joint.cpp", b"namespace joint {\n" + second + first + b"}\n", ("container",)),
        Canary("canary-originals", "part.cpp", part, ("contained",)),
        Canary("canary-twins", "whole.cpp", rest + part),
    ]


def _relabeled() -> list[Canary]:
    """Make a copyleft text, and near copies of it under MIT or without a license."""
    copyleft, permissive = (f"// SPDX-License-{'Identifier'}: {name}\n".encode() for name in ("GPL-2.0-only", "MIT"))
    text, copy = _statements("free"), _statements("free", 20)
    return [
        Canary("canary-originals", "copyleft.cpp", copyleft + text, ("license_refused",)),
        Canary("canary-twins", "relabeled.cpp", permissive + copy, ("copyleft_copy",)),
        Canary("canary-twins", "unlabeled.cpp", copy, ("copyleft_copy",)),
    ]


def _evaluation() -> list[Canary]:
    """Make a file with the solution of a shipped item among other code, and one with it in a comment."""
    solution = shipped_items()[0].solution
    commented = "/*\n" + "".join(f" * {line}\n" for line in solution.splitlines()) + " */\n"
    return [
        Canary("canary-evaluation", path, _code(path, head), ("contaminated",))
        for path, head in {"in_code.cpp": solution, "in_a_comment.cpp": commented}.items()
    ]


def _decided() -> list[Canary]:
    """Make files that a person decided about, and others beside them that stay as they were."""
    claim = "// Not to be used for forecasts without a permission.\n"
    token, other = _tokens()
    secrets = f'open("{token}"); // {other}\n'
    outcomes = {"released.cpp": _KEPT, "concluded.cpp": _KEPT, "refused.cpp": "license_refused"}
    outcomes |= {"not_decided.cpp": "license_quarantined", "other_bytes.cpp": "license_quarantined"}
    waived = _code("waived.cpp", secrets)
    return [
        *(Canary(_DECIDED, path, _code(path, claim), (outcome,)) for path, outcome in outcomes.items()),
        Canary(_DECIDED, "waived.cpp", waived, check=lambda row: _with(token)(row) and _without(other)(row)),
        Canary(_DECIDED, "not_waived.cpp", _code("not_waived.cpp", secrets), check=_without(token, other)),
    ]


def _decisions() -> tuple[Decision, ...]:
    """Return the decisions about the files of `_decided`."""
    made: dict[str, dict[str, Any]] = {
        "released.cpp": {"release": ("license_quarantined",)},
        "concluded.cpp": {"license": "BSD-2-Clause"},
        "refused.cpp": {"license": "GPL-2.0-only"},
        "other_bytes.cpp": {"license": "MIT", "sha256": "0" * 64},
        "waived.cpp": {"waive": "secret", "value_sha256": hashlib.sha256(_tokens()[0].encode()).hexdigest()},
    }
    who: dict[str, Any] = {"person": "nobody", "reason": "A canary."}
    return tuple(Decision(source=_DECIDED, path=path, **fields, **who) for path, fields in made.items())


def _tokens() -> tuple[str, str]:
    return "ghp_" + "0123456789abcdefghij" + "ABCDEFGHIJ012345", "ghp_" + "9876543210jihgfedcba" + "JIHGFEDCBA543210"


def _statements(name: str, num_changed: int = 0) -> bytes:
    """Make a function of 200 statements; the first `num_changed` differ: a known share of shingles."""
    lines = [f"    {name}_{number} += weight_{number} * input_{number};" for number in range(200)]
    lines[:num_changed] = [f"    other_{name}_{n} -= bias_{n} / output_{n};" for n in range(num_changed)]
    return ("void run() {\n" + "\n".join(lines) + "\n}\n").encode()


def _code(name: str, head: str = "") -> bytes:
    """Make a small file of ordinary code that differs from that of any other name."""
    stem = "".join(letter if letter.isalnum() else "_" for letter in name)
    lines = [f"int {stem}_{n}(int {stem}_x{n}) {{ return {stem}_x{n} * {n + 3} + {n * n}; }}" for n in range(24)]
    return (head + "\n".join(lines) + "\n").encode()


def _quotes_no(secret: str) -> Callable[[CanaryRow], bool]:
    return lambda row: not any(secret in value for value in row.values() if isinstance(value, str))


def _without(*values: str) -> Callable[[CanaryRow], bool]:
    """Return a check that no line of the values is in a document."""
    lines = [line for value in values for line in value.split("\n")]
    return lambda document: not any(line in document["text"] for line in lines)


def _with(word: str) -> Callable[[CanaryRow], bool]:
    return lambda document: word in document["text"]


def _archives() -> dict[str, bytes]:
    return {
        "canary-climbs-out": _archive("project/../../escaped.c"),
        "canary-absolute-path": _archive("/escaped.c"),
        "canary-link-out": _archive("project/escaped.c", link="../../../escaped.c"),
        "canary-no-archive": b"<html>not found</html>",
        _SOUND_ARCHIVE: _archive("project/sound.c"),
    }


def _archive(name: str, link: str | None = None) -> bytes:
    """Make an archive of one member: a file, or a link to the path `link`."""
    content = b"" if link else b"int escaped;\n"
    info = tarfile.TarInfo(name)
    info.size = len(content)
    if link:
        info.type, info.linkname = tarfile.SYMTYPE, link
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()
