"""SourceKind: everything that collect needs to know about one kind of source; and Fetcher, the fetching that kinds share."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pipeline.contracts.part import PartJob, StageContext
from pipeline.core.declared import require_type
from pipeline.core.digests import file_sha256
from pipeline.core.errors import FetchError, SourceError
from pipeline.core.file_locks import held
from pipeline.pins.pins import FilePin, SourcePin
from pipeline.stages.collect.contents import ReadFile, ReadOptions, SkippedFile, SourceContents, SpilledBytes
from pipeline.stages.collect.listing import ListedName
from pipeline.stages.collect.params import CollectParams, RetryPolicy

if TYPE_CHECKING:
    from pipeline.stages.collect.network.package_index import PackageIndex

PinT = TypeVar("PinT", bound=SourcePin)
AnswerT = TypeVar("AnswerT")
CollectContext = StageContext[CollectParams]


@dataclass(frozen=True)
class Origin:
    """Origin of a source, as data cards and bills of materials name it."""

    text: str
    """The release, commit or archive in one phrase."""
    purl: str = ""
    """Package URL of the release, if a package index has it."""


def plain_origin(pin: Mapping[str, Any]) -> Origin:
    """Return the kind and the revision of a source."""
    return Origin(f"{pin['kind']} {pin['revision'][:12]}")


@dataclass(frozen=True)
class SourceKind(Generic[PinT]):
    """A kind of source. Its functions import heavy libraries when they are called, not with their module."""

    pin: type[PinT]
    """The model of its pins; the default of `kind` there is the kind's name."""
    fetch: Callable[[PinT, "Fetcher"], Path]
    """Return the path of the verified bytes, fetching what is missing. Raises SourceError."""
    read: Callable[[PartJob, Path, ReadOptions], SourceContents]
    """Read the source from those bytes, its files in the order of their paths. Raises SourceError. Runs in a worker process."""
    propose: Callable[[Path], dict[str, str] | None] = lambda path: None
    """Return the fields of a pin of a local file or folder, or None where another kind has to."""
    origin: Callable[[Mapping[str, Any]], Origin] = plain_origin
    """Return the origin of a source from the identity of its pin."""
    listing: Callable[[Mapping[str, Any], Path, int], Iterable[ListedName]] | None = None
    """List the names in those bytes by code that `read` does not share, from the pin's identity, their path, and the number
    of bytes of the files that `read` found. None: nothing is compared.
    """

    max_expansion: int = 5
    """Bytes of files for one of those bytes, at most as a rule: whether a source may have shards is known before it is read."""
    newest: Callable[[PinT, "Fetcher"], Mapping[str, str]] | None = None
    """Return the fields in which the newest pin of the same source differs, none where it is this one. None: none is newer."""

    reads_path: bool = True
    """True where `read` takes what the `path` of a pin names as it is; otherwise what `fetch` makes of it."""
    version: int = 1
    """Version of what a kind that a program registers reads: raise it where that changes. Those of the package have the stage's."""

    @property
    def name(self) -> str:
        """The value of `kind` in a pin."""
        return str(self.pin.model_fields["kind"].default)

    @property
    def is_file(self) -> bool:
        """True where a revision is the SHA-256 of one file."""
        return self.pin.revision_field == "sha256"

    def path_of(self, pin: PinT, fetcher: "Fetcher") -> Path:
        """Return what `fetch` returns. Raises ParamsError, as the methods below do, if the function returned another type."""
        return self._checked(self.fetch(pin, fetcher), Path, "fetch")

    def contents_of(self, job: PartJob, path: Path, options: ReadOptions) -> SourceContents:
        """Return what `read` returns."""
        contents = self._checked(self.read(job, path, options), SourceContents, "read")
        for file in self._checked(contents.files, tuple, "read"):
            held = self._checked(file, ReadFile, "read").held
            if not isinstance(held, SpilledBytes):
                self._checked(held, bytes, "read")
        for file in self._checked(contents.skipped, tuple, "read"):
            self._checked(file, SkippedFile, "read")
        return contents

    def fields_of(self, path: Path) -> dict[str, str] | None:
        """Return what `propose` returns."""
        fields = self.propose(path)
        return None if fields is None else self._checked(fields, dict, "propose")

    def origin_of(self, pin: Mapping[str, Any]) -> Origin:
        """Return what `origin` returns."""
        return self._checked(self.origin(pin), Origin, "origin")

    def names_in(self, pin: Mapping[str, Any], path: Path, num_bytes: int) -> list[ListedName]:
        """Return what `listing` lists, sorted by name."""
        assert self.listing is not None  # who has none is not listed
        listed = self._checked(self.listing(pin, path, num_bytes), Iterable, "listing")  # type: ignore[type-abstract]
        return sorted((self._checked(each, ListedName, "listing") for each in listed), key=lambda each: each.name)

    def newest_of(self, pin: PinT, fetcher: "Fetcher") -> Mapping[str, str]:
        """Return what `newest` returns."""
        assert self.newest is not None  # who has none is not asked
        return self._checked(self.newest(pin, fetcher), Mapping, "newest")  # type: ignore[type-abstract]

    def _checked(self, value: object, kind: type[AnswerT], function: str) -> AnswerT:
        return require_type(value, kind, f"source kind {self.name}", function)


class Fetcher:
    """Access to the store's blobs and to the network. Network libraries are loaded when bytes are missing."""

    def __init__(self, context: CollectContext, retry: RetryPolicy) -> None:
        self.context = context
        self.retry = retry

    @cached_property
    def index(self) -> "PackageIndex":
        """The package index that pip is configured with."""
        from pipeline.stages.collect.network.package_index import PackageIndex, pip_configuration

        return PackageIndex(pip_configuration(), self.retry)

    def file(self, pin: FilePin, description: str) -> Path:
        """Return the blob of a pin's file, from its path or its URL. Raises SourceError."""
        if pin.path is None:
            return self.blob(pin, pin.sha256, str(pin.url), lambda partial: self._download(pin, partial))
        stored = self.context.blob(pin.sha256)
        if stored is None and not pin.path.is_file():
            raise SourceError(pin.name, f"{pin.path} is not a file", description, "Correct the pin's `path`.")
        return stored or self.context.put_blob(_blocks_of(pin.name, pin.path), pin.sha256, pin.name)

    def blob(self, pin: SourcePin, sha256: str, file_name: str, transfer: Callable[[Path], None]) -> Path:
        """Return the blob of that digest; if it is missing, `transfer` its bytes into a file first. Raises SourceError."""
        stored = self.context.blob(sha256)
        if stored is not None:
            return stored
        self.require_online(pin, f"{file_name} (sha256 {sha256})")
        partial = self.context.partial_blob(sha256)
        partial.parent.mkdir(parents=True, exist_ok=True)
        with held(partial.with_suffix(".lock")):  # two builds never write one partial file
            stored = self.context.blob(sha256)
            if stored is not None:
                return stored
            transfer(partial)
            try:
                return self.context.put_blob(file_blocks(partial), sha256, pin.name)
            finally:
                partial.unlink(missing_ok=True)

    def require_online(self, pin: SourcePin, missing: str) -> None:
        """Raise FetchError if the network must not be used for what is missing from the store."""
        if self.context.offline:
            found = f"{missing} is not in the store, or damaged there, and the build is offline"
            remedy = "Build once with the network, or copy the archive into the store's blobs."
            raise FetchError(pin.name, found, "every archive in the store", remedy)

    def _download(self, pin: FilePin, partial: Path) -> None:
        from pipeline.stages.collect.network.download import download, open_session

        with open_session(self.retry) as session:
            download(session, str(pin.url), partial, pin.sha256, self.retry)


def _blocks_of(name: str, path: Path) -> Iterator[bytes]:
    try:
        yield from file_blocks(path)
    except OSError as error:
        found = f"{path} cannot be read ({error.strerror})"
        raise SourceError(
            name, found, "a file that this user may read", "Correct the pin's `path`, or copy the file."
        ) from None


def newest_file(pin: FilePin, fetcher: Fetcher) -> dict[str, str]:
    """Return the digest that a pin's file has now; of a URL, which names one file, none is newer. Raises SourceError."""
    if pin.path is None:
        return {}
    if not pin.path.is_file():
        raise SourceError(pin.name, f"{pin.path} is not a file", "the file that is pinned", "Correct the pin's `path`.")
    found = file_sha256(pin.path)
    return {} if found == pin.sha256 else {"sha256": found}


def file_blocks(path: Path) -> Iterator[bytes]:
    """Yield a file's bytes, a MiB at a time."""
    with path.open("rb") as file:
        while block := file.read(1024**2):
            yield block
