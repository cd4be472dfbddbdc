"""Pins: entries of a TOML file that name immutable bytes, such as

    [[pin]]
    name = "iminuit"
    kind = "sdist"              sdist | archive | git | local | jsonl
    project = "iminuit"
    version = "2.33.0"
    file_name = "iminuit-2.33.0.tar.gz"
    sha256 = "275f..."
    declared_license = "MIT AND LGPL-2.1-or-later"

A branch, a tag, an abbreviated commit or a missing digest is an error that names the entry and the remedy.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from pipeline.core.errors import PinError, SourceError
from pipeline.core.languages import LANGUAGES
from pipeline.core.params import Params
from pipeline.pins.build_block import BuildBlock
from pipeline.pins.local_tree import tree_digest
from pipeline.pins.selection import Selection

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Commit = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=100)]
Glob = Annotated[str, Field(pattern=r"^[^/\x00]+(/[^/\x00]+)*$", max_length=1000)]
Url = Annotated[str, Field(pattern=r"^https?://[^/\s@]+/\S*$")]  # no credentials: a pin is committed and printed
GitUrl = Annotated[
    str,
    Field(pattern=r"^(https?://[^/\s@]+/\S+|ssh://([A-Za-z0-9._]+@)?[A-Za-z0-9\[][^/\s@]*/\S+|file:///\S+)$"),
]
Share = Annotated[float, Field(ge=0, le=1)]
FieldName = Annotated[str, Field(min_length=1)]

OPERATIONAL = Path(__file__).parent / "operational.toml"
"""The pins that recipes build."""

_NO_IDENTITY = {"weight", "upstreams", "languages"}
"""Fields that change nothing in what is collected."""

RESERVED_NAMES = frozenset({"canaries", "duplicates", "loader", "smoke", "snapshot"})
"""Names of parts that are of no source and stand in one list with those that are."""


class SourcePin(Params):
    """What all kinds of pin share."""

    name: Slug
    """What the source is called everywhere: lower-case letters, digits and hyphens."""
    kind: str
    """Decides which further fields there are."""
    declared_license: str = ""
    """SPDX expression that the package declares for itself; empty when it declares none."""
    inherit_license: bool = Field(default=True, strict=True)
    """Whether a file without a license of its own may inherit the nearest license text's or the package's."""
    include: tuple[Glob, ...] = ()
    """Globs of the source files that are wanted; none means all."""
    exclude: tuple[Glob, ...] = ()
    """Globs of the files that are not wanted."""
    build: BuildBlock | None = None
    """How a compiler would read the source; None leaves it to the parser."""
    weight: float = Field(default=1.0, gt=0, le=1000, strict=True)
    """Weight of the source in the mixture, relative to the others."""

    upstreams: dict[Glob, Slug] = Field(default={})
    """Glob of this source's files -> name of the pin that they were copied from: of copies, that pin's is kept."""
    languages: dict[str, tuple[Share, Share]] = Field(default={})
    """Band of each language's share in what the rules leave, by the name in `LANGUAGES`. One not named is not judged."""

    places: ClassVar[frozenset[str]] = frozenset()
    """Fields that say where the bytes are had, not which they are."""
    revision_field: ClassVar[str]
    """The field that holds the revision."""

    @model_validator(mode="after")
    def _has_sound_bands(self) -> "SourcePin":
        for language, (low, high) in self.languages.items():
            if language not in LANGUAGES:
                raise ValueError(f"there is no language {language}; expected {', '.join(LANGUAGES.names)}")
            if low > high:
                raise ValueError(f"a band of {language} that does not end before it begins")
        return self

    @property
    def revision(self) -> str:
        """What the bytes are: an archive's sha256, a commit, the digest of a tree."""
        return str(getattr(self, self.revision_field))

    def identity(self) -> dict[str, Any]:
        """What the collected source depends on, as JSON: all but where they are had and how they are judged."""
        unsaid = {"build"} if self.build is None else set()
        without = _NO_IDENTITY | {self.revision_field} | self.places | unsaid
        fields = self.model_dump(mode="json", exclude=without)
        return {**fields, "revision": self.revision}

    def selection(self) -> Selection:
        """The files that this pin wants."""
        return Selection(self.include, self.exclude)


class SdistPin(SourcePin):
    """A source distribution, found by project and file name in the package index that pip is configured with."""

    kind: Literal["sdist"] = "sdist"
    project: str = Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
    version: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.!+_-]*$")
    file_name: str = Field(pattern=r"^[^/\\\s]+\.(tar\.gz|tar\.bz2|tar\.xz|zip)$")
    sha256: Sha256

    revision_field: ClassVar[str] = "sha256"


class ArchivePin(SourcePin):
    """A tar or zip archive at a URL or, relative to the pins file, at a path."""

    kind: Literal["archive"] = "archive"
    url: Url | None = None
    path: Path | None = None
    sha256: Sha256

    places: ClassVar[frozenset[str]] = frozenset({"url", "path"})
    revision_field: ClassVar[str] = "sha256"

    @model_validator(mode="after")
    def _has_one_place(self) -> "ArchivePin":
        _require_one_place(self.url, self.path)
        return self


class GitPin(SourcePin):
    """A commit of a git repository at an `https`, `ssh` or `file` URL."""

    kind: Literal["git"] = "git"
    url: GitUrl
    commit: Commit
    history: bool = Field(default=False, strict=True)
    """Whether the commit's ancestors are fetched too, and the modifications of its files are kept beside them."""

    places: ClassVar[frozenset[str]] = frozenset({"url"})
    revision_field: ClassVar[str] = "commit"


class LocalPin(SourcePin):
    """A folder, relative to the pins file, whose `digest` is that of `local.tree_digest`."""

    kind: Literal["local"] = "local"
    path: Path
    digest: Sha256

    places: ClassVar[frozenset[str]] = frozenset({"path"})
    revision_field: ClassVar[str] = "digest"


class JsonlPin(SourcePin):
    """A file of JSON lines, and the names of the fields that hold a document's text, path and license."""

    kind: Literal["jsonl"] = "jsonl"
    url: Url | None = None
    path: Path | None = None
    sha256: Sha256
    text_field: FieldName = "text"
    path_field: FieldName = "path"
    license_field: FieldName | None = None

    places: ClassVar[frozenset[str]] = frozenset({"url", "path"})
    revision_field: ClassVar[str] = "sha256"

    @model_validator(mode="after")
    def _has_one_place(self) -> "JsonlPin":
        _require_one_place(self.url, self.path)
        if self.build is not None:
            raise ValueError("no `build`: lines hold no tree that could be built")
        return self


_ANY_PIN: TypeAdapter[SourcePin] = TypeAdapter(
    Annotated[SdistPin | ArchivePin | GitPin | LocalPin | JsonlPin, Field(discriminator="kind")]
)


def load_pins(path: Path) -> tuple[SourcePin, ...]:
    """The pins of a TOML file that holds `[[pin]]` tables and nothing else, sorted by name.

    Raises PinError for the first bad entry. A relative `path` in an entry counts from the file's folder.
    """
    entries = read_tables(path, "pin")
    pins = [pin_of(entry, _subject(entry, number, path), path.parent) for number, entry in enumerate(entries, start=1)]
    names = [pin.name for pin in pins]
    for name in names:
        if names.count(name) > 1:
            raise PinError(
                f"{path}: {name}",
                f"{names.count(name)} entries have this name",
                "a name of its own for each source",
                "Rename or remove all but one.",
            )
    for pin in pins:
        _refuse_strange_upstreams(pin, names, f"{path}: {pin.name}")
    return tuple(sorted(pins, key=lambda pin: pin.name))


def pin_of(entry: Mapping[str, Any], subject: str, folder: Path) -> SourcePin:
    """The pin of one entry; a relative `path` in it counts from `folder`. Raises PinError about `subject`."""
    given = dict(entry)
    if isinstance(entry.get("path"), str):
        given["path"] = folder.absolute() / entry["path"]
    try:
        pin = _ANY_PIN.validate_python(given)
    except ValidationError as error:
        field, found, expected = describe(error)
        expected = _EXPECTED.get(field, expected)
        raise PinError(subject, found, expected, _remedy(field, given)) from None
    if pin.name in RESERVED_NAMES:
        found, expected = f"name is {pin.name!r}", f"any name but {', '.join(sorted(RESERVED_NAMES))}"
        raise PinError(
            subject, found, expected, "Those stand beside the sources in a stage's output: rename the entry."
        )
    return pin


def _refuse_strange_upstreams(pin: SourcePin, names: list[str], subject: str) -> None:
    strange = sorted(set(pin.upstreams.values()) - (set(names) - {pin.name}))
    if strange:
        expected = f"names of other pins of the file: {', '.join(sorted(set(names) - {pin.name})) or 'there is none'}"
        raise PinError(
            subject, f"upstreams names {', '.join(strange)}", expected, "Correct the name or remove the line."
        )


def toml_of(entry: Mapping[str, str]) -> str:
    """An entry as it stands in a pins file. Raises PinError for text that no TOML file can hold."""
    lines = ["[[pin]]"]
    for name, value in entry.items():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            found, remedy = f"{name} is {value!a}", "Rename what it names."
            raise PinError(f"pin {entry.get('name', '')}", found, "text in UTF-8", remedy) from error
        lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f"))
    return "\n".join(lines)


def read_tables(path: Path, key: str) -> list[dict[str, Any]]:
    """The `[[key]]` tables of a TOML file that holds nothing else. Raises PinError."""
    wanted = f"[[{key}]] tables and nothing else"
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PinError(str(path), f"cannot be read ({error.strerror})", wanted, "Name a file that exists.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PinError(str(path), f"is not TOML ({error})", wanted, "Mend the syntax at that place.") from error
    others = sorted(set(content) - {key})
    entries = content.get(key)
    if others:
        found = f"holds {', '.join(map(repr, others))}"
        raise PinError(str(path), found, wanted, f"Move that elsewhere, or write [[{key}]].")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise PinError(str(path), f"holds no [[{key}]] table", wanted, f"Add at least one [[{key}]].")
    return entries


def _require_one_place(url: str | None, path: Path | None) -> None:
    if (url is None) == (path is None):
        raise ValueError("either `url` or `path`, and not both")


def describe(error: ValidationError) -> tuple[str, str, str]:
    """The field of a model's first error, what was found there, and what was expected."""
    details = error.errors()[0]
    field = next((str(name) for name in reversed(details["loc"]) if isinstance(name, str)), "")
    if details["type"] == "missing":
        return field, f"`{field}` is missing", "it to be given"
    if details["type"] == "extra_forbidden":
        return field, f"`{field}` is not a known field", "the fields of this kind and no others"
    if details["type"] == "union_tag_not_found":
        return "kind", "`kind` is missing", _KINDS
    if details["type"] == "union_tag_invalid":
        return "kind", f"kind is {details['input'].get('kind')!r}", _KINDS
    if details["type"] == "value_error":
        return field, "the entry as a whole does not hold", details["msg"].removeprefix("Value error, ")
    return field, f"{field} is {details['input']!r}", details["msg"]


def _subject(entry: dict[str, Any], number: int, path: Path) -> str:
    name = entry.get("name")
    return f"{path}: {name}" if isinstance(name, str) and name else f"{path}: entry {number}"


def _remedy(field: str, given: dict[str, Any]) -> str:
    if field == "digest" and given.get("kind") == "local":
        return _local_digest_remedy(given)
    if field == "commit":
        return f"Run `git ls-remote {given.get('url', 'URL')}` and paste the full id of the commit."
    return _REMEDIES.get(field, "Correct the entry.")


def _local_digest_remedy(given: dict[str, Any]) -> str:
    """Computing the digest here is what lets a person paste it."""
    globs = [given.get(field, ()) for field in ("include", "exclude")]
    if not isinstance(given.get("path"), Path) or not all(isinstance(glob, list | tuple) for glob in globs):
        return "Give the `path` too; the message then shows the digest of its tree."
    try:
        now = tree_digest(given["path"], Selection(*globs))
    except SourceError as error:
        return f"It could not be computed: {error}"
    return f'Review the tree, then write digest = "{now}", which is what it has now.'


_KINDS = "sdist, archive, git, local or jsonl"

_EXPECTED = {
    "commit": "a full commit id of 40 or 64 lower-case hex digits, because branches, tags and abbreviations move",
    "sha256": "64 lower-case hex digits",
    "digest": "64 lower-case hex digits",
    "name": "lower-case letters, digits and single hyphens",
}

_REMEDIES = {
    "sha256": "Run sha256sum on the archive, or copy the digest behind its link in the package index.",
    "name": "Rename the entry.",
    "kind": "Write one of these.",
    "url": "Write an https, ssh or file URL without a password in it: a pin is committed and printed.",
    "weight": "Write a number above 0 and at most 1000, or leave it out for 1.0.",
}
