"""HeldOut: the rule by which documents are held out from training: by source, by glob, or by a keyed hash.

    held_out.sources = ["heron"]                whole sources
    held_out.globs = ["mine/tests/**"]          files whose `source/path` matches
    held_out.hash_fraction = 0.05               that share of all files, or of all repositories: a pin is one

A document is held out if any of the three says so. The hash of a name depends on the name and the salt alone: a file that is added
moves no other. It is BLAKE2b with eight bytes over salt, NUL and name (person `sluice/held-out`), big-endian; held out is what is
below fraction · 2^64.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from pipeline.core.change_text import changed_file
from pipeline.core.errors import ParamsError, StageError, did_you_mean
from pipeline.core.globs import Globs
from pipeline.core.params import Params
from pipeline.core.records import Split
from pipeline.core.table_names import DROPPED, FILES
from pipeline.pins.selection import Selector

_FIELD = "held_out"
_NUM_HASHES = 2**64


class HeldOut(Params):
    """Rule of which documents are held out. A list of names is read as `sources`."""

    list_field: ClassVar[str] = "sources"
    """Field that a list in place of the table is the value of."""

    sources: tuple[str, ...] = ()
    """Names of the sources that are held out as a whole."""
    globs: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Globs of files over `source/path`: `*` and `?` match within a folder, `**` any number of folders."""
    hash_fraction: float | None = Field(default=None, gt=0, lt=1)
    """Share of the names that the keyed hash holds out; none unless given."""
    hash_of: Literal["file", "repository"] = "file"
    """Name that is hashed: `source/path` of each file, or that of the source, which is one repository."""
    hash_salt: str = Field(default="", max_length=200)
    """Text that is hashed before each name: another salt holds out others."""

    @model_validator(mode="before")
    @classmethod
    def _read_names(cls, value: Any) -> Any:
        values = {"sources": value} if isinstance(value, list | tuple) else value
        if not isinstance(values, Mapping):
            return values
        return {name: tuple(each) if isinstance(each, list) else each for name, each in values.items()}

    @field_validator("sources", "globs")
    @classmethod
    def _in_order(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        Globs(names)
        return tuple(sorted(set(names)))

    @model_validator(mode="after")
    def _refuse_idle_hash(self) -> "HeldOut":
        """Refuse a salt, or a choice of names, of no hash: it would change what a build is called and nothing in it."""
        if self.hash_fraction is None:
            for name in ("hash_salt", "hash_of"):
                if (value := getattr(self, name)) != type(self).model_fields[name].default:
                    raise ValueError(f"{name} is {value!r} without a hash_fraction: nothing is hashed")
        return self

    def split(self, source: str, path: str) -> Split:
        """Return the split of a file."""
        name = f"{source}/{path}"
        is_held_out = self.holds_out(source) or (bool(self.globs) and _compiled(self.globs).match_any(name))
        return Split.HELD_OUT if is_held_out or self._is_chosen(name, "file") else Split.TRAIN

    def holds_out(self, source: str) -> bool:
        """Return whether a source is held out as a whole."""
        return source in self.sources or self._is_chosen(source, "repository")

    def of_files(self, source: str) -> "HeldOut | None":
        """Return the rule for the files of a source that is not held out as a whole; None if it concerns none of them."""
        globs = tuple(glob for glob in self.globs if _may_match(glob, source))
        is_hashed = self.hash_fraction is not None and self.hash_of == "file"
        kept = self.model_dump(include={"hash_fraction", "hash_of", "hash_salt"}) if is_hashed else {}
        return HeldOut(globs=globs, **kept) if globs or is_hashed else None

    def among(self, names: Iterable[str]) -> "HeldOut":
        """Return the rule without sources that are not among these."""
        known = set(names)
        return self.model_copy(update={"sources": tuple(name for name in self.sources if name in known)})

    def refuse_idle_sources(self, names: Iterable[str]) -> None:
        """Raise ParamsError if a source, or that of a glob, is not among these, or if the names alone hold out all, or none."""
        known = sorted(names)
        for name in sorted(set(self.sources) - set(known)):
            remedy = did_you_mean(name, known, "Correct the name, or leave it out.")
            raise ParamsError(f"{_FIELD}.sources", f"no pin is named {name}", _shown(known), remedy)
        for glob in self.globs:
            first, _, rest = glob.partition("/")
            if any(_may_match(glob, name) for name in known):
                continue
            if not rest and any(_may_match(f"{first}/*", name) for name in known):
                found, expected = f"{glob!r} is of a source, and of no file", f"a glob over `source/path`: {first}/**"
                remedy = "Write it so for all its files."
            else:
                found = f"{glob!r} is of no pin"
                expected = f"a glob that begins with a source: {_shown(known)}"
                remedy = did_you_mean(first, known, "Write it over `source/path`; `**` stands for any folders.")
            raise ParamsError(f"{_FIELD}.globs", found, expected, remedy)
        held_out = [name for name in known if self.holds_out(name)]
        if known and all(
            self.holds_out(name) or any(_matches_all(glob, name) for glob in self.globs) for name in known
        ):
            found = f"the rule holds out all sources: {_shown(known)}"
            raise ParamsError(
                _FIELD, found, "one at least to train on", "Hold out fewer, or hold out by `globs` of files."
            )
        if self.hash_fraction is not None and self.hash_of == "repository" and set(held_out) <= set(self.sources):
            found = f"the hash of {len(known)} names holds out none: {_shown(known)}"
            raised = self._raise_to([name for name in known if name not in self.sources])
            remedy = f"{raised}, use another `hash_salt`, or hash files by `hash_of`."
            raise ParamsError(f"{_FIELD}.hash_fraction", found, "one source at least", remedy)

    def refuse_idle_parts(
        self, parts: Mapping[str, str], read: Callable[[str], Any], withdrawn: Iterable[Selector] = ()
    ) -> tuple[str, ...]:
        """Raise StageError for a rule about single files that holds out none of them, or all: only their names tell.

        `parts` are collected sources, by name, and `read` opens one. What a withdrawal took away counts as matched: the globs of
        which nothing else is left are returned, each in a sentence.
        """
        if all(self.of_files(source) is None for source in parts) and not self.globs:
            return ()
        files: list[tuple[str, str]] = []
        gone: list[str] = []
        for source, object_id in sorted(parts.items()):
            stored = read(object_id)
            rows = stored.table(FILES, ["path", "is_evidence"]).to_pylist()
            files += [(source, changed_file(row["path"])) for row in rows if not row["is_evidence"]]
            drops = stored.table(DROPPED, ["path", "reason"]).to_pylist()
            gone += [f"{source}/{changed_file(row['path'])}" for row in drops if row["reason"] == "withdrawn"]
        return self.refuse_idle_files(files, gone, [each.text for each in withdrawn if each.is_whole_source])

    def refuse_idle_files(
        self, files: Sequence[tuple[str, str]], gone: Sequence[str] = (), gone_sources: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Raise StageError if a glob matches none of the files, by source and path, the hash none, or the rule all of them.

        `gone` are the names of files that are withdrawn, `gone_sources` those of sources that are, of which no file is known.
        """
        subject, names = _FIELD, [f"{source}/{path}" for source, path in files]
        idle = [glob for glob in self.globs if not any(map(_compiled((glob,)).match_any, names))]
        for glob in idle:
            if not _is_of_withdrawn(glob, gone, gone_sources):
                found = f"{glob!r} matches none of {len(files):,} collected files"
                expected = f"a glob over `source/path`, such as {names[0] if names else 'mine/tests/**'}"
                raise StageError(subject, found, expected, "Correct `held_out.globs`, or leave the glob out.")
        is_hashed = self.hash_fraction is not None and self.hash_of == "file"
        if is_hashed and not any(self._is_chosen(name, "file") for name in (*names, *gone)):
            found = f"the hash of {len(files):,} files holds out none"
            remedy = f"{self._raise_to(names)}, or use another `held_out.hash_salt`."
            raise StageError(subject, found, "one file at least", remedy)
        if (self.globs or is_hashed) and all(self.split(*file) == Split.HELD_OUT for file in files):
            found = f"the rule holds out all of {len(files):,} collected files"
            found += f"; {len(gone):,} files are withdrawn" if gone else ""
            found += f"; withdrawn as a whole: {_shown(gone_sources)}" if gone_sources else ""
            narrower = {"narrow `held_out.globs`": bool(self.globs), "lower `held_out.hash_fraction`": is_hashed}
            remedy = " or ".join(each for each, is_of_it in narrower.items() if is_of_it).capitalize()
            raise StageError(subject, found, "one at least to train on", f"{remedy}.")
        return tuple(
            f"held_out: {glob!r} matches no file that is left: what it may name is withdrawn, as `python -m pipeline withdraw` "
            "lists. Leave it out of `held_out.globs`, or keep it for the day on which that is taken back."
            for glob in idle
        )

    def _is_chosen(self, name: str, kind: str) -> bool:
        if self.hash_fraction is None or self.hash_of != kind:
            return False
        return self._number(name) < int(self.hash_fraction * _NUM_HASHES)

    def _number(self, name: str) -> int:
        content = f"{self.hash_salt}\0{name}".encode("utf-8", "surrogateescape")
        return int.from_bytes(blake2b(content, digest_size=8, person=b"sluice/held-out").digest(), "big")

    def _raise_to(self, names: Iterable[str]) -> str:
        """Return what to do about a fraction that holds out none of these names: the least one, rounded up, that does one."""
        least, *others = sorted(set(map(self._number, names)))[:2]
        for num_digits in range(2, 16):
            fraction = (least * 10**num_digits // _NUM_HASHES + 1) / 10**num_digits
            if others and least < int(fraction * _NUM_HASHES) <= others[0]:
                return f"Raise `held_out.hash_fraction` to {fraction:.{num_digits}f}, which holds out one"
        return "Raise `held_out.hash_fraction`"


@lru_cache(maxsize=256)
def _compiled(globs: tuple[str, ...]) -> Globs:
    return Globs(globs)


def _may_match(glob: str, source: str) -> bool:
    """Return whether a glob may match a file of a source: its first folder is not another name."""
    first, _, rest = glob.partition("/")
    return first == "**" or (bool(rest) and _compiled((first,)).match_any(source))


def _is_of_withdrawn(glob: str, gone: Iterable[str], gone_sources: Iterable[str]) -> bool:
    """Return whether a glob matches a withdrawn file, or may match one of a source that is withdrawn as a whole."""
    return any(map(_compiled((glob,)).match_any, gone)) or any(_may_match(glob, source) for source in gone_sources)


def _matches_all(glob: str, source: str) -> bool:
    """Return whether a glob matches every file of a source, as `**`, `mine/**` and `**/*` do."""
    rest = glob.partition("/")[2]
    return glob in ("**", "**/*") or (rest in ("**", "**/*") and _may_match(glob, source))


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
