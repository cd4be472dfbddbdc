"""Where the verified bytes of a pin lie: found in the store, or fetched into it. One function a kind of pin."""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

from pipeline.collect.archives.blocks import file_blocks
from pipeline.collect.git.fetch import fetch_commit
from pipeline.collect.network.retry import Patience
from pipeline.collect.params import CollectParams
from pipeline.contracts.part import StageContext
from pipeline.core.digests import file_sha256
from pipeline.core.durable import held
from pipeline.core.errors import FetchError, SourceError
from pipeline.pins.local_tree import check_tree, tree_digest
from pipeline.pins.pins import ArchivePin, GitPin, JsonlPin, LocalPin, SdistPin, SourcePin

if TYPE_CHECKING:
    from pipeline.collect.network.package_index import PackageIndex

Context = StageContext[CollectParams]
_FilePin = ArchivePin | JsonlPin


class Network:
    """The ways to bytes elsewhere. Their libraries are loaded, and the package index asked for, when bytes are missing."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience

    @cached_property
    def index(self) -> "PackageIndex":
        from pipeline.collect.network.package_index import PackageIndex, pip_configuration

        return PackageIndex(pip_configuration(), self.patience)

    def fetch_sdist(self, pin: SdistPin, partial: Path) -> None:
        """Bring an sdist into the file `partial`, unjudged."""
        self.index.fetch(pin, partial)

    def fetch_url(self, pin: _FilePin, partial: Path) -> None:
        """Bring what is at the pin's URL into the file `partial`, unjudged."""
        from pipeline.collect.network.download import download, open_session

        with open_session(self.patience) as session:
            download(session, str(pin.url), partial, pin.sha256, self.patience)


def places_of(pin: SourcePin, context: Context, network: Network) -> dict[str, Path]:
    """The place of a pin's bytes, by the label that says how they are to be read. Raises a SourceError."""
    return _PLACES_OF[type(pin)](pin, context, network)


def _places_of_sdist(pin: SourcePin, context: Context, network: Network) -> dict[str, Path]:
    pin = cast(SdistPin, pin)
    return {"archive": _blob(pin, pin.file_name, context, partial(network.fetch_sdist, pin))}


def _places_of_archive(pin: SourcePin, context: Context, network: Network) -> dict[str, Path]:
    return {"archive": _file_at(cast(ArchivePin, pin), "the archive", context, network)}


def _places_of_jsonl(pin: SourcePin, context: Context, network: Network) -> dict[str, Path]:
    return {"lines": _file_at(cast(JsonlPin, pin), "the file of JSON lines", context, network)}


def _places_of_tree(pin: SourcePin, context: Context, network: Network) -> dict[str, Path]:
    """A tree can change under a pin, so its digest is taken in every run, not only when its part is made."""
    pin = cast(LocalPin, pin)
    check_tree(pin.name, tree_digest(pin.path, pin.selection()), pin.digest)
    return {"tree": pin.path}


def _places_of_git(pin: SourcePin, context: Context, network: Network) -> dict[str, Path]:
    """A pack's bytes depend on who packed it, so it is found by the commit's id; its reader judges it by that."""
    pin = cast(GitPin, pin)
    with_history = f"git/{pin.commit}.history"
    wanted = with_history if pin.history else f"git/{pin.commit}"
    stored = context.named_blob(wanted) or context.named_blob(with_history)
    if stored is not None:
        return {"pack": stored}
    if context.offline:
        raise _absent(pin, f"commit {pin.commit}{' with its history' if pin.history else ''}")
    beside = context.partial_blob(pin.commit)
    beside.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=beside.parent, prefix="git-") as folder:
        pack = fetch_commit(pin, Path(folder), context.params.max_total_bytes, network.patience)
        sha256 = file_sha256(pack)
        stored = context.put_blob(file_blocks(pack), sha256, pin.name)
    context.name_blob(wanted, sha256)
    return {"pack": stored}


_PLACES_OF: Mapping[type[SourcePin], Callable[[SourcePin, Context, Network], dict[str, Path]]] = {
    SdistPin: _places_of_sdist,
    ArchivePin: _places_of_archive,
    GitPin: _places_of_git,
    LocalPin: _places_of_tree,
    JsonlPin: _places_of_jsonl,
}


def _file_at(pin: _FilePin, what: str, context: Context, network: Network) -> Path:
    if pin.path is None:
        return _blob(pin, str(pin.url), context, partial(network.fetch_url, pin))
    stored = context.blob(pin.sha256)
    if stored is None and not pin.path.is_file():
        raise SourceError(pin.name, f"{pin.path} is not a file", what, "Correct the pin's `path`.")
    return stored or context.put_blob(file_blocks(pin.path), pin.sha256, pin.name)


def _blob(pin: SdistPin | _FilePin, file_name: str, context: Context, fetch: Callable[[Path], None]) -> Path:
    stored = context.blob(pin.sha256)
    if stored is not None:
        return stored
    if context.offline:
        raise _absent(pin, f"{file_name} (sha256 {pin.sha256})")
    arriving = context.partial_blob(pin.sha256)
    arriving.parent.mkdir(parents=True, exist_ok=True)
    with held(arriving.with_suffix(".lock")):  # two builds never write one file that arrives
        stored = context.blob(pin.sha256)
        if stored is not None:
            return stored
        fetch(arriving)
        try:
            return context.put_blob(file_blocks(arriving), pin.sha256, pin.name)
        finally:
            arriving.unlink(missing_ok=True)


def _absent(pin: SourcePin, what: str) -> FetchError:
    found = f"{what} is not in the store, or not sound there, and the network is not to be used"
    remedy = "Build once with the network, or copy the archive into the store's blobs."
    return FetchError(pin.name, found, "every archive to be there", remedy)
