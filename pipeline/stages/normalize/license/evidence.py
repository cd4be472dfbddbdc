"""Evidence of licenses in one source: tags, sidecars, REUSE and DEP-5 annotations, headers, license texts, package metadata."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath

import re2

from pipeline.core.records import LicenseEvidence
from pipeline.pins.selection import is_readme
from pipeline.stages.normalize.encodings.decode import Decoded, decode
from pipeline.stages.normalize.license.extents import EXTENTS
from pipeline.stages.normalize.license.policy import MAX_EXPRESSION
from pipeline.stages.normalize.license.prose.comments import Prose, prose_of
from pipeline.stages.normalize.license.prose.names import PUBLIC_DOMAIN
from pipeline.stages.normalize.license.prose.words import as_written
from pipeline.stages.normalize.license.read_comments import BSD_FAMILY, Reading, read_prose
from pipeline.stages.normalize.license.readme_sections import license_section, readmes_of, said_beyond
from pipeline.stages.normalize.license.reuse import Annotation, Precedence, closest, read_dep5, read_reuse_toml
from pipeline.stages.normalize.license.tags import LicenseClaim, find_tags, find_title
from pipeline.stages.normalize.license.text_limits import terms_beyond
from pipeline.stages.normalize.license.texts import recognize

_PACKAGE_LICENSE = re.compile(r"^License-Expression:[ \t]*(.+)$", re.MULTILINE | re.IGNORECASE)
_OLD_FIELDS = re.compile(r"^(?:License:|Classifier:[ \t]*License[ \t]*::)[ \t]*(\S.*)$", re.MULTILINE | re.IGNORECASE)
_PERMISSIVE_FIELD = re2.compile(
    r"(?i)\b(?:MIT|BSD|Apache|ISC|zlib|Boost|Unlicense|public domain|PSF|Python Software|CC0)\b"
)
_FIELDS_THAT_ASK_MORE = {
    "AGPL-3.0-only": re2.compile(r"(?i)\bAGPL|\bAffero\b"),
    "LGPL-2.0-or-later": re2.compile(r"(?i)\bLGPL|\b(?:Lesser|Library) General Public\b"),
    "GPL-1.0-or-later": re2.compile(r"(?i)\bGPL|\bGeneral Public Licen[cs]e\b"),
    "LicenseRef-Proprietary": re2.compile(
        r"(?i)\b(?:proprietary|commercial|closed|confidential|all rights reserved|non-?commercial)\b"
    ),
}
"""Licenses that fields of free text name, by what they say; the first holds."""
_MAX_TAGGED = 100_000
"""Characters of a license text up to which its tags are those of the whole: a longer one is a collection of what its parts say."""
_FROM_ANOTHER = re2.compile(r"(?i)\b(?:adapted|modified|derived|ported|originally)\b|\bbased (?:up)?on\b")
_THIS_FILE = re2.compile(
    r"(?i)\bthis (?:file|code|source|software|program|work|implementation)\b[^.]{0,80}public\s+domain"
)
_NOT_LICENSE_TEXTS = frozenset({"PKG-INFO", "REUSE.toml", "dep5"})


@dataclass(frozen=True)
class Statement:
    """A statement of licenses: expressions that all hold, the kind of evidence, and the lines that state them.

    `is_partial` says that what the file inherits holds beside them: they are those of a part, or it names that one too.
    """

    expressions: tuple[str, ...]
    evidence: LicenseEvidence
    lines: tuple[str, ...]
    is_partial: bool = False


@dataclass(frozen=True)
class FileText:
    """A source file whose license is to be decided."""

    path: str
    text: str

    @cached_property
    def readings(self) -> list[tuple[Prose, Reading]]:
        """The comments that may speak of a license, and what each group says."""
        return [(prose, read_prose(prose)) for prose in prose_of(self.path, self.text)]


@dataclass(frozen=True)
class FolderTexts:
    """The license texts of a folder. All of them hold.

    `problem` is why they are unclear, or None; `is_near` says that one is nearly a license, or limits what another grants:
    no package outweighs it. `is_of_source` says that they are in the top folder and speak of the whole source. `title` is a
    copyleft title with the path of its text, if any. `named` are licenses that words beside recognized texts put the work under,
    each with the path.
    """

    paths: tuple[str, ...]
    expressions: tuple[str, ...]
    lines: tuple[str, ...]
    problem: str | None
    is_near: bool
    is_of_source: bool
    title: tuple[str, LicenseClaim] | None
    named: tuple[tuple[str, str], ...] = ()


NO_ASSERTION = "NOASSERTION"
"""Expression of who makes no statement (SPDX specification 3.0.1)."""


class SourceEvidence:
    """The evidence of one source, parsed once."""

    def __init__(self, files: Mapping[str, bytes], declared_license: str, vendored_roots: Iterable[str]) -> None:
        self._sidecars = {path: content for path, content in files.items() if path.endswith(".license")}
        self._annotations, self._broken = _read_annotations(files)
        self._texts = _license_texts(files)
        self._paths = _paths_by_folder(self._texts)
        self._vendored_roots = frozenset(vendored_roots)
        self._folders: dict[str, FolderTexts] = {}
        self._nearest: dict[str, FolderTexts | None] = {}
        self._sections = {path: license_section(_text_of(files[path])) for path in files if is_readme(path)}
        self._readmes = readmes_of(self._sections)
        self.package = _package_statement(files, declared_license)
        declared = expression_ids(self.package.expressions) if self.package else set()
        self._declares_known = bool(declared) and EXTENTS.keys() >= {_as_listed(each) for each in declared}

    def about(self, file: FileText) -> Statement | None:
        """Return what is stated about this one file: by its tags, its sidecar, or an annotation."""
        annotation = closest(self._annotations, file.path)
        if annotation and annotation.precedence is Precedence.OVERRIDE:
            return _annotated(annotation)
        own = _tagged(file.path, file.text, LicenseEvidence.FILE)
        sidecar = f"{file.path}.license"
        if own is None and sidecar in self._sidecars:
            own = _tagged(sidecar, _text_of(self._sidecars[sidecar]), LicenseEvidence.SIDECAR)
        if annotation is None or (own and annotation.precedence is Precedence.CLOSEST):
            return own
        stated = _annotated(annotation)
        if own is None:
            return stated
        return Statement(own.expressions + stated.expressions, own.evidence, own.lines + stated.lines)

    def in_comments(self, file: FileText) -> Statement | None:
        """Return what the license texts and notices in a file's comments state."""
        named = [(prose, reading, license) for prose, reading in file.readings for license in reading.expressions]
        names_inherited = any(license == BSD_FAMILY for *_, license in named) and self._inherits_bsd(file.path)
        stated = [each for each in named if each[2] != BSD_FAMILY or not names_inherited]
        if not stated:
            return None
        found = tuple(dict.fromkeys(license.replace(BSD_FAMILY, "BSD-3-Clause") for *_, license in stated))
        lines = tuple(dict.fromkeys(f"{file.path}: {line}" for _, reading, _ in stated for line in reading.lines))
        is_of_origin = found == (PUBLIC_DOMAIN,) and all(_speaks_of_an_origin(prose.text) for prose, *_ in stated)
        is_partial = names_inherited or is_of_origin or all(prose.is_inside for prose, *_ in stated)
        return Statement(found, LicenseEvidence.HEADER, lines, is_partial)

    def _inherits_bsd(self, path: str) -> bool:
        """Return whether a `BSD-style license` is the one whose text the file inherits."""
        texts = self.nearest_texts(path)
        near = (texts.expressions if texts else ()) + (self.package.expressions if self.package else ())
        return any(license.startswith("BSD-") for license in expression_ids(near))

    def broken_annotation(self, path: str) -> Annotation | None:
        """Return an annotation that covers the file and cannot be read."""
        return next((annotation for annotation in self._broken if annotation.covers(path)), None)

    def nearest_texts(self, path: str) -> FolderTexts | None:
        """Return the license texts in the folder of `path` or the nearest above it, at most up to the vendored root.

        They are unclear where a README of those folders names another license, or limits what they allow.
        """
        folder = str(PurePosixPath(path).parent)
        if folder not in self._nearest:
            self._nearest[folder] = self._texts_for(path)
        return self._nearest[folder]

    def _texts_for(self, path: str) -> FolderTexts | None:
        root = vendored_root(path, self._vendored_roots)
        found: FolderTexts | None = None
        sections: list[str] = []
        for folder in map(str, PurePosixPath(path).parents):
            sections += self._readmes.get(folder, [])
            if folder not in self._folders:
                self._folders[folder] = _read_folder(
                    folder, self._paths.get(folder, []), self._texts, is_known=self._declares_known
                )
            if self._folders[folder].paths:
                found = self._folders[folder]
            if found or folder == root:
                break
        return self._with_sections(found, sections)

    def _with_sections(self, texts: FolderTexts | None, readmes: list[str]) -> FolderTexts | None:
        """Return license texts as they are beside the sections about licenses in READMEs, or these alone where they say more."""
        package = self.package.expressions if self.package and (texts is None or texts.is_of_source) else ()
        stated = expression_ids((*(texts.expressions if texts else ()), *package))
        said = {path: words for path in readmes if (words := said_beyond(self._sections[path], stated))}
        if not said:
            return texts
        found = texts or FolderTexts((), (), (), None, False, False, None)
        problems = [*filter(None, (found.problem,)), *(f"{path} says `{words}`" for path, words in said.items())]
        return replace(found, paths=(*found.paths, *said), problem="; ".join(problems), is_near=True)


def _speaks_of_an_origin(text: str) -> bool:
    """Return whether it is what a file was made from that a comment has in the public domain."""
    return _FROM_ANOTHER.search(text) is not None and _THIS_FILE.search(text) is None


def vendored_root(path: str, names: Iterable[str]) -> str | None:
    """Return the innermost folder of a path whose name says that its content comes from elsewhere, or None."""
    folders = path.split("/")[:-1]
    for depth in range(len(folders), 0, -1):
        if folders[depth - 1].lower() in names:
            return "/".join(folders[:depth])
    return None


def expression_ids(expressions: Iterable[str]) -> set[str]:
    """Return the license ids that expressions name."""
    return set(re.findall(r"[\w.+-]+", " ".join(expressions))) - {"AND", "OR", "WITH"}


def _paths_by_folder(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the paths directly in each folder, in their order."""
    found: dict[str, list[str]] = {}
    for path in sorted(paths):
        found.setdefault(str(PurePosixPath(path).parent), []).append(path)
    return found


def _as_listed(license: str) -> str:
    """Return the id by which the text of a license is recognized: that of the GNU licenses is the same with later versions."""
    return license.replace("-or-later", "-only").replace("LGPL-2.0-only", "LGPL-2.1-only")


def _read_folder(folder: str, here: list[str], texts: Mapping[str, str], *, is_known: bool) -> FolderTexts:
    """Read the texts directly in `folder`. A notice file grants only if there is no license text, and limits always.

    `is_known` says that the texts of all licenses that the package declares would be recognized: an unknown text is of another.
    """
    paths = [path for path in here if not PurePosixPath(path).name.lower().startswith("notice")] or here
    expressions: list[str] = []
    lines: list[str] = []
    problems: list[str] = []
    is_near = False
    titles = {path: title for path in paths if (title := find_title(texts[path]))}
    for path in paths:
        if tags := find_tags(path, texts[path]):
            expressions += [tag.expression for tag in tags]
            lines += [f"{path}:{tag.line}: SPDX-License-Identifier: {tag.expression}" for tag in tags]
            if len(texts[path]) > _MAX_TAGGED:
                problems.append(f"{path}: a collection of license texts, some of them tagged")
                is_near = True
            continue
        found = recognize(texts[path])
        expressions += found.licenses
        is_near = is_near or found.near is not None
        if found.problem:
            problems.append(f"{path} says `{titles[path].words}`" if path in titles else f"{path}: {found.problem}")
        lines.append(f"{path}: {found.problem or 'the text of ' + ' AND '.join(found.licenses)}")
    is_another = is_known and folder == "." and not expressions
    beyond = {path: terms_beyond(texts[path], is_unknown_another=is_another) for path in here}
    limits = {path: each.limit for path, each in beyond.items() if each.limit}
    problems += [f"{path} says `{as_written(limit, texts[path])}`" for path, limit in limits.items()]
    if "LGPL-3.0-only" in expressions and "GPL-3.0-only" in expressions:
        expressions.remove("GPL-3.0-only")  # LGPL-3.0 adds permissions to GPL-3.0, whose text accompanies it
    return FolderTexts(
        paths=tuple(paths),
        expressions=tuple(dict.fromkeys(expressions)),
        lines=tuple(lines),
        problem="; ".join(problems) or None,
        is_near=is_near or bool(limits),
        is_of_source=folder == ".",
        title=max(titles.items(), key=lambda item: item[1].license_class, default=None),
        named=tuple((path, license) for path, each in beyond.items() for license in each.named),
    )


def _tagged(path: str, text: str, evidence: LicenseEvidence) -> Statement | None:
    tags = find_tags(path, text)
    if not tags:
        return None
    lines = tuple(f"{path}:{tag.line}: SPDX-License-Identifier: {tag.expression[:MAX_EXPRESSION]}" for tag in tags)
    return Statement(tuple(tag.expression for tag in tags), evidence, lines)


def _annotated(annotation: Annotation) -> Statement:
    evidence = LicenseEvidence.DEP5 if ".reuse/dep5" in annotation.where else LicenseEvidence.REUSE
    return Statement(annotation.expressions, evidence, (f"{annotation.where}: {' AND '.join(annotation.expressions)}",))


def _read_annotations(files: Mapping[str, bytes]) -> tuple[list[Annotation], list[Annotation]]:
    """Return the annotations that can be read, and those that cannot."""
    found: list[Annotation] = []
    for path in sorted(files):
        if PurePosixPath(path).name == "REUSE.toml":
            found += read_reuse_toml(path, files[path])
        elif path.endswith(".reuse/dep5"):
            found += read_dep5(path, files[path])
    return [each for each in found if each.problem is None], [each for each in found if each.problem is not None]


def _license_texts(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return license texts by path. LICENSES/ is a library of texts and states nothing about a folder."""
    return {
        path: _text_of(content)
        for path, content in files.items()
        if not path.endswith(".license")
        and not is_readme(path)
        and PurePosixPath(path).name not in _NOT_LICENSE_TEXTS
        and PurePosixPath(path).parent.name != "LICENSES"
    }


def _text_of(content: bytes) -> str:
    """Return evidence as text in its encoding; if none fits, with replacement characters."""
    decoded = decode(content)
    return decoded.text if isinstance(decoded, Decoded) else content.decode("utf-8", "replace")


def _package_statement(files: Mapping[str, bytes], declared_license: str) -> Statement | None:
    """Return what the package's metadata and the pin declare. If they differ, both must hold.

    Beside another statement one that asserts nothing is none.
    """
    lines, expressions = [], []
    metadata = sorted(
        (path for path in files if PurePosixPath(path).name == "PKG-INFO"), key=lambda path: (path.count("/"), path)
    )
    headers = _text_of(files[metadata[0]]).split("\n\n")[0] if metadata else ""
    for match in _PACKAGE_LICENSE.finditer(headers):
        expressions.append(match[1].strip())
        lines.append(f"{metadata[0]}:{headers.count(chr(10), 0, match.start()) + 1}: {match[0].strip()}")
    if metadata and not expressions and (found := _in_old_fields(headers)):
        expressions.append(found[0])
        lines.append(f"{metadata[0]}: {found[1]}")
    if declared_license and declared_license not in expressions:
        expressions.append(declared_license)
        lines.append(f"pin: declared_license = {declared_license}")
    asserted = [(each, line) for each, line in zip(expressions, lines, strict=True) if each.upper() != NO_ASSERTION]
    if asserted:
        expressions, lines = map(list, zip(*asserted, strict=True))
    return Statement(tuple(expressions), LicenseEvidence.PACKAGE, tuple(lines)) if expressions else None


def _in_old_fields(headers: str) -> tuple[str, str] | None:
    """Return the license that asks more than a permissive one, and its line, if fields of free text name no other."""
    fields = list(_OLD_FIELDS.finditer(headers))
    if any(_PERMISSIVE_FIELD.search(field[1]) for field in fields):
        return None
    named = (
        (license, field) for field in fields for license, says in _FIELDS_THAT_ASK_MORE.items() if says.search(field[1])
    )
    return next(((license, field[0].strip()) for license, field in named), None)
