"""A made corpus with secrets, e-mail addresses and home folders in every place where text of a source comes in.

Each place has values of its own, put together when the tests run, so that what is found says where it came from.
"""

import json
import random
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.pins.build_block import BuildBlock
from pipeline.pins.local_tree import tree_digest
from pipeline.pins.pins import SourcePin
from pipeline.stages.collect.kinds.git import GitPin
from pipeline.stages.collect.kinds.jsonl import JsonlPin
from pipeline.stages.collect.kinds.local import LocalPin
from tests.support.git_repository import create

TAG = "SPDX-License-" + "Identifier:"
NAMED = "named"
"""The place of a secret that is the name of a file: names stay in the tables of drops."""
ITEM = "item"


@dataclass
class Planted:
    """Values by place: each place has a secret, an e-mail address and a home folder."""

    secrets: dict[str, str] = field(default_factory=dict)
    mails: dict[str, str] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)

    def secret(self, place: str) -> str:
        return self.secrets.setdefault(place, "AKIA" + _word(place, string.ascii_uppercase + "234567", 16))

    def mail(self, place: str) -> str:
        return self.mails.setdefault(place, f"{_word(place, string.ascii_lowercase, 12)}@" + "sluice-planted.org")

    def home(self, place: str) -> str:
        return self.homes.setdefault(place, "/home/" + f"{_word(place, string.ascii_lowercase[::-1], 11)}/work")

    def all_of(self, place: str) -> str:
        return f"{self.secret(place)} {self.mail(place)} {self.home(place)}"

    def places_in(self, content: bytes) -> set[str]:
        """The kind and place of each value in some bytes. Of a home folder, the user's name is enough."""
        every = {
            **{f"secret of {place}": value for place, value in self.secrets.items()},
            **{f"mail of {place}": value.partition("@")[0] for place, value in self.mails.items()},
            **{f"home of {place}": value.split("/")[2] for place, value in self.homes.items()},
        }
        return {name for name, value in sorted(every.items()) if value.encode() in content}


def _word(seed: str, alphabet: str, count: int) -> str:
    generator = random.Random(f"{seed}/{alphabet}")
    return "".join(generator.choice(alphabet) for _ in range(count))


def code(name: str, num_functions: int = 14) -> str:
    """Ordinary code, unlike that of any other name."""
    return "".join(
        f"int {name}_{n}(int {name}_x{n}) {{ return {name}_x{n} * {n + 2}; }}\n" for n in range(num_functions)
    )


def planted_pins(root: Path, planted: Planted) -> tuple[SourcePin, ...]:
    """Write all sources below `root`, and return their pins, sorted by name."""
    trees = {"files": _files(planted), "packaged": _packaged(planted), "reused": _reused(planted)}
    built = _built(planted)
    pins: list[SourcePin] = [_local(root / name, files) for name, files in trees.items()]
    pins.append(_local(root / "built", built, build=BuildBlock(database="compile_commands.json")))
    (root / "files" / "link.h").symlink_to(f"{planted.home('link')}/{planted.secret('link')}.h")
    pins[0] = _pin(root / "files")
    return tuple(sorted([*pins, _lines(root, planted), _repository(root, planted)], key=lambda pin: pin.name))


def write_items(folder: Path, planted: Planted) -> None:
    """Write an evaluation item whose id holds all values, and whose solution a file of `files` holds."""
    item = {"id": planted.all_of(ITEM), "prompt": "p", "solution": _solution()}
    folder.mkdir()
    (folder / "items.jsonl").write_text(json.dumps(item) + "\n")


def _solution() -> str:
    return code("solution", 6)


def _local(folder: Path, files: Mapping[str, str], **more: object) -> LocalPin:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return _pin(folder, **more)


def _pin(folder: Path, **more: object) -> LocalPin:
    fields = {"name": folder.name, "path": folder, "digest": tree_digest(folder), "declared_license": "MIT", **more}
    return LocalPin(**fields)  # type: ignore[arg-type]


def _files(planted: Planted) -> dict[str, str]:
    """Files whose own text, header, tags and folder's texts hold values."""
    of = planted.secret
    return {
        "plain.cpp": "int first;\n" + f"// {planted.all_of('comment')}\n" + code("plain"),
        "tag.cpp": f"// {TAG} MIT AND {of('tag')}\n" + code("tag"),
        "tag_cut.cpp": f"// {TAG} MIT AND {'x' * 40} {of('tag_cut')}\n" + code("tag_cut"),
        "tag_long.cpp": code("tag_long"),
        "tag_long.cpp.license": f"{TAG} {'MIT AND ' * 122}{of('tag_long')} {of('tag_longer')}\n",
        "tag_reference.cpp": f"// {TAG} LicenseRef-{of('reference')}\n" + code("reference"),
        "tag_with.cpp": f"// {TAG} MIT WITH {of('exception')}\n" + code("exception"),
        "side.cpp": code("side"),
        "side.cpp.license": f"{TAG} Apache-2.0 AND {of('sidecar')} {planted.mail('sidecar')}\n",
        "claim.cpp": f"// This is proprietary and confidential {planted.all_of('claim')}\n" + code("claim"),
        "denied.cpp": f"// Not licensed under the MIT License but {of('denied')} {planted.home('denied')}\n"
        + code("denied"),
        "generated.cpp": f"// Generated by {planted.all_of('generated')}. Do not edit.\n" + code("generated"),
        "small.cpp": f"// Copyright 2020 {planted.mail('small')}\n// {of('small')}\n",
        "contaminated.cpp": _solution() + code("contaminated"),
        "includes.cpp": "".join(
            f'#include "{text}/x.h"\n' for text in (of("include"), planted.mail("include"), planted.home("include"))
        )
        + f"#include <{of('angled')}.h>\n"
        + code("includes"),
        f"home/jdoe/{of(NAMED)}.h": code("named"),
        "jane@" + "names-stay.org/kept.h": code("kept"),
        "other/LICENSE": f"Terms of {planted.all_of('text')}\nYou may look at it on Sundays.\n",
        "other/below.cpp": code("below"),
        "gnu/LICENSE": "GNU GENERAL PUBLIC LICENSE\n Version 3\n" + planted.all_of("gnu"),
        "gnu/below.cpp": code("gnu"),
        "notice/NOTICE": f"{TAG} MIT AND {of('notice')}\n{planted.all_of('notice')}\n",
        "notice/below.cpp": code("notice"),
        **{f"more/{name}.cpp": code(f"more_{name}") for name in "abcdefgh"},
    }


def _packaged(planted: Planted) -> dict[str, str]:
    metadata = f"Metadata-Version: 2.4\nLicense-Expression: MIT AND {planted.secret('metadata')}\n"
    return {"PKG-INFO": f"{metadata}Author: {planted.all_of('author')}\n\nText.\n", "a.cpp": code("packaged")}


def _reused(planted: Planted) -> dict[str, str]:
    """Annotations: REUSE.toml and dep5, readable and broken."""
    reuse = f"""# {planted.all_of("reuse_comment")}
version = 1
[[annotations]]
path = "stated/*.cpp"
SPDX-FileCopyrightText = "2020 {planted.mail("reuse_owner")}"
SPDX-License-Identifier = "MIT OR {planted.secret("reuse")}"
[[annotations]]
path = "broken/*.cpp"
precedence = "{planted.all_of("precedence")}"
SPDX-License-Identifier = "MIT"
"""
    dep5 = f"Files: *\nCopyright: {planted.mail('dep5_owner')}\nLicense: MIT and {planted.secret('dep5')}\n"
    return {
        "REUSE.toml": reuse,
        "stated/a.cpp": code("stated"),
        "broken/a.cpp": code("broken"),
        "old/.reuse/dep5": f"Format: x\nUpstream-Contact: {planted.mail('contact')}\n\n{dep5}",
        "old/a.cpp": code("old"),
        "bad/REUSE.toml": f"no = toml {planted.secret('toml')}",
        "bad/a.cpp": code("bad"),
        "kept.cpp": code("reused_kept"),
    }


def _built(planted: Planted) -> dict[str, str]:
    """A tree with a compile database: definitions, folders and response files hold values."""
    definitions = [
        f"-DTOKEN={planted.secret('token')}",
        f"-DKEY_OF_SERVICE={planted.secret('definition')}",
        f'-DWHO="{planted.mail("definition")}"',
        f"-DWHERE={planted.home('definition')}",
        f"-DLONG={planted.secret('long')}" + "x" * 3_000,
        f"-I{planted.home('root')}/include",
        f"-Iinclude/{planted.secret('root')}",
        "@flags.rsp",
    ]
    entry = {"directory": "/w", "file": "unit.cpp", "arguments": ["c++", *definitions, "-c", "unit.cpp"]}
    return {
        "compile_commands.json": json.dumps([entry]),
        "flags.rsp": f"-DRESPONSE={planted.secret('response')}",
        "CMakeLists.txt": f"# {planted.all_of('script')}\n",
        "unit.cpp": '#include "header.h"\n' + code("unit"),
        "header.h": code("header"),
    }


def _lines(root: Path, planted: Planted) -> JsonlPin:
    """JSON lines: texts, licenses and paths hold values, and so do lines that are refused."""
    rows = [
        {"path": "a.cpp", "text": f"int a;\n// {planted.all_of('line')}\n" + code("line")},
        {"path": "b.cpp", "text": code("licensed"), "license": f"MIT AND {planted.secret('line_license')}"},
        {"path": "c.cpp", "text": code("refused"), "license": f"MIT; {planted.all_of('bad_license')}"},
        {"path": f"../{planted.secret('bad_path')}/c.cpp", "text": code("refused")},
        {"path": "d.cpp", "text": code("twice"), "note": planted.all_of("other_field")},
    ]
    path = root / "lines.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    import hashlib

    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return JsonlPin(name="lines", path=path, sha256=sha256, license_field="license", declared_license="MIT")


def _repository(root: Path, planted: Planted) -> GitPin:
    repository = create(root / "repository")
    text = code("committed")
    removed, added = (f"// {planted.all_of(place)}\n" for place in ("removed", "added"))
    repository.commit(f"Begin {planted.all_of('subject')}", a__cpp=text + removed)
    repository.git("config", "user.email", planted.mail("committer"))
    commit = repository.commit(
        f"Change {planted.all_of('later')}", a__cpp=text.replace("* 5", "* 55 /* longer, and why */") + added
    )
    return GitPin(name="repository", url=repository.url, commit=commit, declared_license="MIT", history=True)
