"""SourcePin: an entry of a pins file, a TOML file that names immutable bytes, such as

    [[pin]]
    name = "iminuit"
    kind = "sdist"
    project = "iminuit"
    version = "2.33.0"
    file_name = "iminuit-2.33.0.tar.gz"
    sha256 = "275f..."
    declared_license = "MIT AND LGPL-2.1-or-later"

`kind` selects the model of the entry: each kind of source in `pipeline.stages.collect.kinds` declares its own. A branch, a tag, an
abbreviated commit or a missing digest is an error that names the entry and the remedy.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, TypeVar
from unicodedata import category

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from pipeline.core.errors import PinError, did_you_mean
from pipeline.core.globs import MAX_NUM_CHARACTERS
from pipeline.core.params import Params
from pipeline.core.registry import Named
from pipeline.core.settings.fields import field_at, inner_params
from pipeline.core.toml_text import read_toml
from pipeline.lexing.languages import LANGUAGES
from pipeline.pins.build_block import BuildBlock
from pipeline.pins.selection import Selection

N = TypeVar("N", bound=Named)
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
DIGEST_FORM = "64 lower-case hex digits"
"""`Sha256` in words."""
Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=100)]
Glob = Annotated[str, Field(pattern=r"^[^/\x00]+(/[^/\x00]+)*$", max_length=1000)]
Url = Annotated[str, Field(pattern=r"^https?://[^/\s@]+/\S*$")]  # no credentials: a pin is committed and printed
PlainPath = Annotated[Path, AfterValidator(lambda path: _plain(path))]
"""Path of a file that somebody wrote down: without control characters, and short enough for a system to have it."""
Share = Annotated[float, Field(ge=0, le=1)]

MAX_PATH = 4_096
"""Characters of a path, as on Linux."""
_NOT_IN_IDENTITY = {"weight", "upstreams", "languages"}
"""Fields that do not change what is collected."""


class SourcePin(Params):
    """The fields that pins of all kinds share. A subclass gives `kind` its default, and `revision_field`."""

    model_config = ConfigDict(use_attribute_docstrings=False)  # no form shows them, and reading them costs each start

    name: Slug
    """Name of the source everywhere: lower-case letters, digits and hyphens."""
    kind: str
    """Kind of the source; decides which further fields there are."""
    declared_license: str = ""
    """SPDX expression that the package declares for itself; empty when it declares none."""
    inherit_license: bool = Field(default=True, strict=True)
    """A file without a license of its own may inherit the nearest license text's or the package's."""
    include: tuple[Glob, ...] = ()
    """Globs of the source files to collect; empty means all."""
    exclude: tuple[Glob, ...] = ()
    """Globs of the files to leave out."""
    build: BuildBlock | None = None
    """Settings for the compiler to read the source; None means that only the parser reads it."""
    weight: float = Field(default=1.0, gt=0, le=1000, strict=True)
    """Weight of the source in the mixture, relative to the others."""

    upstreams: dict[Glob, Slug] = Field(default={})
    """Glob of this source's files -> name of the pin that they were copied from: of copies, that pin's is kept."""
    languages: dict[str, tuple[Share, Share]] = Field(default={})
    """Band of each language's share in what the rules keep, by its name in `LANGUAGES`. One not named is not checked."""

    locator_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields that say where the bytes are found, not which bytes they are."""
    revision_field: ClassVar[str]
    """The field that holds the revision."""

    @model_validator(mode="after")
    def _has_short_globs(self) -> "SourcePin":
        for globs in (self.include, self.exclude):
            if sum(map(len, globs)) > MAX_NUM_CHARACTERS:
                raise ValueError(f"globs of at most {MAX_NUM_CHARACTERS} characters together")
        return self

    @model_validator(mode="after")
    def _has_valid_bands(self) -> "SourcePin":
        for language, (low, high) in self.languages.items():
            if language not in LANGUAGES:
                raise ValueError(f"bands of {', '.join(LANGUAGES.names)}, not of {language}")
            if low > high:
                raise ValueError(f"the lower bound of the band of {language} to be at most the upper one")
        return self

    @property
    def revision(self) -> str:
        """The identity of the bytes: an archive's sha256, a commit, the digest of a tree."""
        return str(getattr(self, self.revision_field))

    def identity(self) -> dict[str, Any]:
        """Return what the collected source depends on, as JSON: every field but locators and those of later stages."""
        absent = {"build"} if self.build is None else set()
        without = _NOT_IN_IDENTITY | {self.revision_field} | self.locator_fields | absent
        fields = self.model_dump(mode="json", exclude=without)
        return {**fields, "revision": self.revision}

    def selection(self) -> Selection:
        """Return the files that this pin selects."""
        return Selection(self.include, self.exclude)

    @classmethod
    def hint(cls, field: str, entry: Mapping[str, Any]) -> tuple[str, str]:
        """Return what is expected of a bad field, empty where the model's own message says it, and the remedy."""
        return _HINTS.get(field, ("", "Correct the entry."))


class FilePin(SourcePin):
    """A file at a URL or, relative to the pins file, at a path."""

    url: Url | None = None
    path: PlainPath | None = None
    sha256: Sha256

    locator_fields: ClassVar[frozenset[str]] = frozenset({"url", "path"})
    revision_field: ClassVar[str] = "sha256"

    @model_validator(mode="after")
    def _has_one_locator(self) -> "FilePin":
        if (self.url is None) == (self.path is None):
            raise ValueError("either `url` or `path`, and not both")
        return self


class PinKind(Named, Protocol):
    """A kind of pin: the value of `kind` in an entry, and the model of such an entry."""

    @property
    def pin(self) -> type[SourcePin]: ...


def load_pins(path: Path, kinds: Iterable[PinKind]) -> tuple[SourcePin, ...]:
    """Return the pins of a TOML file that holds `[[pin]]` tables and nothing else, sorted by name.

    Raises PinError for the first bad entry. A relative `path` in an entry is relative to the file's folder.
    """
    known = tuple(kinds)
    pins = by_name(path, [parse_pin(entry, subject, path.parent, known) for subject, entry in read_tables(path, "pin")])
    for pin in pins:
        _refuse_unknown_upstreams(pin, {other.name for other in pins} - {pin.name}, f"{path}: {pin.name}")
    return pins


def parse_pin(entry: Mapping[str, Any], subject: str, folder: Path, kinds: Iterable[PinKind]) -> SourcePin:
    """Return the pin of one entry; a relative `path` in it is relative to `folder`. Raises PinError about `subject`."""
    models = {kind.name: kind.pin for kind in kinds}
    kind = entry.get("kind")
    if not isinstance(kind, str) or kind not in models:
        found = "`kind` is missing" if kind is None else f"kind is {kind!r}"
        raise PinError(subject, found, f"one of {', '.join(models)}", "Write one of these.")
    given = dict(entry)
    if isinstance(entry.get("path"), str):
        given["path"] = folder.absolute() / entry["path"]
    try:
        pin = models[kind].model_validate(given)
    except ValidationError as error:
        field, found, expected = first_error(error, models[kind])
        hint, remedy = models[kind].hint(field, given)
        raise PinError(subject, found, hint or expected, remedy) from None
    return pin


def pin_toml(entry: Mapping[str, str]) -> str:
    """Return an entry in the form of a pins file. Raises PinError for text that no TOML file can hold."""
    lines = ["[[pin]]"]
    for name, value in entry.items():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            found, remedy = f"{name} is {value!a}", "Rename what it names."
            raise PinError(f"pin {entry.get('name', '')}", found, "text in UTF-8", remedy) from error
        lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f"))
    return "\n".join(lines)


def by_name(path: Path, entries: Sequence[N]) -> tuple[N, ...]:
    """Sort the entries of a file by name. Raises PinError for a name that several have."""
    for name, number in Counter(entry.name for entry in entries).items():
        if number > 1:
            found, remedy = f"{number} entries have this name", "Rename or remove all but one."
            raise PinError(f"{path}: {name}", found, "one entry for each name", remedy)
    return tuple(sorted(entries, key=lambda entry: entry.name))


def read_tables(
    path: Path, key: str, refusal: type[PinError] = PinError, is_required: bool = True
) -> list[tuple[str, dict[str, Any]]]:
    """Read the `[[key]]` tables of a TOML file that holds nothing else, each with its subject in messages. Raises `refusal`."""
    wanted = f"[[{key}]] tables and nothing else"
    try:
        content = read_toml(path)
    except OSError as error:
        raise refusal(str(path), f"cannot be read ({error.strerror})", wanted, "Name a file that exists.") from error
    except ValueError as error:
        raise refusal(str(path), f"is not TOML ({str(error)[:500]})", wanted, "Correct the syntax there.") from error
    others = sorted(set(content) - {key})
    entries = content.get(key, [] if not is_required else None)
    if others:
        found = f"holds {', '.join(map(repr, others))}"
        raise refusal(str(path), found, wanted, f"Move that to another file, or write [[{key}]].")
    is_list = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    if not isinstance(entries, list) or not is_list or (is_required and not entries):
        raise refusal(str(path), f"holds no [[{key}]] table", wanted, f"Add at least one [[{key}]].")
    names = (entry.get("name") for entry in entries)
    subjects = [
        name if isinstance(name, str) and name and name.isprintable() else f"entry {n}"
        for n, name in enumerate(names, start=1)
    ]
    return [(f"{path}: {subject}", entry) for subject, entry in zip(subjects, entries, strict=True)]


def first_error(error: ValidationError, model: type[BaseModel]) -> tuple[str, str, str]:
    """Return the field of the first error of an entry of that model, what was found there, and what was expected."""
    details = error.errors()[0]
    field = next((str(name) for name in reversed(details["loc"]) if isinstance(name, str)), "")
    if details["type"] == "missing":
        return field, f"`{field}` is missing", "a value"
    if details["type"] == "extra_forbidden":
        names = _names_beside(model, [str(step) for step in details["loc"]])
        expected = did_you_mean(field, names).removeprefix("Did you mean ").removesuffix("?") or ", ".join(names)
        return field, f"`{field}` is not a known field", expected or "only the fields of this kind"
    if details["type"] == "value_error":
        found = f"{field} is {str(details['input'])!r}" if details["loc"] else "the entry is not valid"
        return field, found, details["msg"].removeprefix("Value error, ")
    if details["type"] == "model_type":
        return field, f"{field} is {details['input']!r}", "a table"
    words = _EXPECTED.get(details["type"], "").format(**details.get("ctx", {}))
    expected = words or details["msg"].removeprefix("Input should be ")
    return field, f"{field} is {_without_login(repr(details['input']))}", expected


_EXPECTED = {
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number of at least {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number of at most {le}",
    "path_type": "a path",
    "string_pattern_mismatch": "a text that matches the pattern {pattern!r}",
    "string_too_long": "a text of at most {max_length} characters",
    "string_too_short": "a text of at least {min_length} characters",
    "string_type": "a text",
}
"""Kind of an error of pydantic -> what was expected, where its own words are about Python."""


def _without_login(text: str) -> str:
    """Return the text of a value without the user and the password of a URL: an error is printed, and stored."""
    before, slashes, after = text.partition("//")
    return f"{before}//***@{after.rpartition('@')[2]}" if slashes and "@" in after else text


def _names_beside(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """Return the names of the fields of the table that a dotted name is in."""
    above = field_at(model, path[:-1]) if len(path) > 1 and issubclass(model, Params) else None
    inner = model if len(path) == 1 else inner_params(above.annotation) if above else None
    return list(inner.model_fields) if inner else []


def _plain(path: Path) -> Path:
    if any(category(character) == "Cc" for character in str(path)) or len(str(path)) > MAX_PATH:
        raise ValueError(f"a path of at most {MAX_PATH} characters, none of them a control character")
    return path


def _refuse_unknown_upstreams(pin: SourcePin, others: set[str], subject: str) -> None:
    unknown = sorted(set(pin.upstreams.values()) - others)
    if unknown:
        found, remedy = f"upstreams names {', '.join(unknown)}", "Correct the name or remove the line."
        expected = f"names of other pins of the file: {', '.join(sorted(others)) or 'it has no other'}"
        raise PinError(subject, found, expected, remedy)


_HINTS = {
    "name": ("lower-case letters, digits and single hyphens", "Rename the entry."),
    "sha256": (DIGEST_FORM, "Run sha256sum on the archive, or copy the digest from its link in the package index."),
    "url": ("", "Write an https, ssh or file URL without a password in it: a pin is committed and printed."),
    "weight": ("", "Write a number above 0 and at most 1000, or leave it out for 1.0."),
}
