"""Bucket: the storage of a store in S3 or a server that speaks as S3 does, with a folder here as its cache.

    format                       the version of the store, as in a folder
    logs  log/<log>/<number>-…   the logs, and with them the refs: a ref is where its last line says
    objects/<id>/<name>          the files of an object, manifest.json written last: without it, there is no object
    blobs/<sha256>               archives, as received
    keys/ names/ verdicts/ verified/ removing    as in a folder
    leases/                      who writes a corpus, who uses the store, who removes from it

Refused bytes, results of the compiler, reports and temporary files stay in the cache. A file of an object is brought when it is
read, and compared with the digest that its manifest names; one that is here and is not so is brought again.
"""

import os
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from pipeline.core.digests import file_sha256, known_sha256, text_sha256
from pipeline.core.durable import hidden_sibling, make_folder, remove, replace
from pipeline.core.errors import DamagedError, LockedError, ParamsError, StoreError
from pipeline.core.file_locks import WAIT_REMEDY, acquire
from pipeline.core.params import canonical_json, parse_json
from pipeline.storage.bucket_client import BucketAddress, BucketClient, RefusedError, parse_address
from pipeline.storage.leases import Leases
from pipeline.storage.shared_logs import SharedLogs
from pipeline.storage.storage import CACHE_MARK, DAMAGE_REMEDY, Lines, Storage

CACHE = "SLUICE_CACHE"
"""The variable that names the folder of the caches of buckets, ~/.cache/sluice/buckets unless given."""
CACHE_BYTES = "SLUICE_CACHE_BYTES"
"""The variable that bounds a cache between two commands."""
_CACHE_BYTES = 50_000_000_000
_NO_KEYS = ("refs/", "log/", "ends", "erased/")
"""Places that are no keys of the bucket: what is made from the logs, and records of erasures, which are refused there."""
_MANIFEST = "manifest.json"
_NUM_THREADS = 16
_FIRST_RETRIES = 3
"""Times that the first request of a command is repeated: a wrong address is told within a second."""
_ALONE, _USE = "leases/alone", "leases/use"


class Bucket(Storage):
    """Storage of a bucket."""

    is_shared = True

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._address, cache = _parsed_mark(root)
        self.client = BucketClient(self._address)
        self._logs = SharedLogs(self.client)
        self._leases = Leases(self.client, cache)
        self._num_users = 0
        self._num_bytes, self._num_seconds = 0, 0.0
        self._collection: int | None = None
        self._present: set[str] = set()
        """Objects that were seen in the bucket since this process holds the store: nothing removes them meanwhile."""
        self._read: dict[str, str] = {}
        """Digests of keys of objects that this process has read since then."""
        self._listed: dict[str, dict[str, int]] = {}
        """Sizes of the files of objects that were listed since then."""

    @property
    def max_cache_bytes(self) -> int:  # type: ignore[override]
        """Bound of the cache."""
        return _bound()

    @property
    def address(self) -> str:
        return self._address.text

    def fetch(self, place: str) -> None:
        if place.startswith(_NO_KEYS):
            return
        found = self.client.get(place)
        if found is None:
            remove(self.root / place)
        else:
            self._keep(place, found[0])

    def fetch_all(self, folder: str) -> list[str]:
        if f"{folder}/" in _NO_KEYS:
            return []
        if folder == "objects":
            return self._fetch_manifests()
        names = set(self.client.sizes(folder))
        here = [path for path in (self.root / folder).glob("**/*") if path.is_file()]
        for path in here:
            if path.relative_to(self.root / folder).as_posix() not in names:
                remove(path)
        self._at_once(self.fetch, (f"{folder}/{name}" for name in sorted(names)))
        return []

    def fetch_object(self, object_id: str) -> None:
        if object_id in self._present:
            return
        here = self._folder_of(object_id)
        if here is None or not (here / _MANIFEST).is_file():
            found = self.client.get(f"objects/{object_id}/{_MANIFEST}")
            if found is None:
                return
            self._keep_manifest(object_id, found[0])
        else:
            sizes = self.client.sizes(f"objects/{object_id}")
            if _MANIFEST not in sizes:
                remove(here)
                return
            if self._num_users:
                self._listed[object_id] = sizes
        if self._num_users:
            self._present.add(object_id)

    def bring(self, place: str) -> None:
        if not (self.root / place).is_file():
            self._download(place)

    def bring_all(self, sizes: Mapping[str, int]) -> None:
        if (num_bytes := sum(sizes.values())) > _bound():
            found, remedy = f"a table of it has {num_bytes:,} bytes", f"Set {CACHE_BYTES} to more."
            raise StoreError(f"store {self.address}", found, f"at most {_bound():,}, the bound of its cache", remedy)
        missing = [place for place in sizes if not (self.root / place).is_file()]
        if missing:
            started = time.monotonic()
            self._at_once(self._download, missing)
            self._num_seconds += time.monotonic() - started
            self._num_bytes += sum((self.root / place).stat().st_size for place in missing)

    @property
    def fetched(self) -> str:
        told = f"{self._num_bytes / 1e6:,.1f} MB were fetched in {self._num_seconds:.1f} s"
        return told if self._num_bytes else ""

    def put(self, place: str) -> None:
        if not place.startswith(_NO_KEYS):
            self.client.put(_key(place), self.root / place)

    def put_object(self, path: Path) -> None:
        place = path.relative_to(self.root).as_posix()
        files = [f"{place}/{each.name}" for each in sorted(path.iterdir()) if each.name != _MANIFEST]
        self._at_once(self.put, files)
        self.put(f"{place}/{_MANIFEST}")
        self._listed.pop(path.name, None)
        if self._num_users:
            self._present.add(path.name)

    def hand_over(self, folder: Path, object_id: str, place: str) -> None:
        paths = {path.name: path for path in sorted(folder.iterdir())}
        self._at_once(lambda name: self.client.put(f"objects/{object_id}/{name}", paths[name]), paths)
        remove(folder)

    def remove(self, place: str) -> None:
        super().remove(place)
        if not place.startswith((*_NO_KEYS, "tmp/", "rejected/", "units/", "reports/", "locks/")):
            self.client.delete(_key(place))

    def remove_object(self, object_id: str) -> None:
        self._present.discard(object_id)
        self._listed.pop(object_id, None)
        self.client.delete(f"objects/{object_id}/{_MANIFEST}")  # without it, the others are no object
        names = self.client.sizes(f"objects/{object_id}")
        self._at_once(self.client.delete, (f"objects/{object_id}/{name}" for name in names))

    def remove_leftovers(self) -> None:
        names = sorted(self.client.sizes("objects"))
        whole = {name.partition("/")[0] for name in names if name.endswith(f"/{_MANIFEST}")}
        self._at_once(self.client.delete, (f"objects/{name}" for name in names if name.partition("/")[0] not in whole))

    def has(self, place: str) -> bool:
        return not place.startswith(_NO_KEYS) and self.client.has(_key(place))

    def names(self, folder: str) -> list[str]:
        return self.client.names(folder)

    def all_names(self, folder: str) -> list[str]:
        return self.client.names(_key(folder))

    def sha256(self, path: Path, expected: str) -> str:
        place = path.relative_to(self.root).as_posix()
        if not path.is_file():
            self._download(place)
        found = known_sha256(path)
        if found != expected and place.startswith("objects/") and self._download(place):
            return known_sha256(path)
        return found

    def stored_sha256(self, path: Path, is_known: bool = False) -> str:
        key = _key(path.relative_to(self.root).as_posix())
        if key.startswith("rejected/"):
            return file_sha256(path)
        if not (is_known and key in self._read):
            self._read[key] = self.client.sha256(key)
        return self._read[key]

    def to_verify(self, object_id: str, sizes: Mapping[str, int]) -> Collection[str]:
        """Return the files that are here. Of the others the sizes are compared, and the bytes when they are read."""
        stored, here = self._listed.get(object_id), self._folder_of(object_id)
        if stored is None:
            stored = self.client.sizes(f"objects/{object_id}")
        for name, num_bytes in sizes.items():
            if stored.get(name) != num_bytes:
                raise DamagedError(f"file {name} of object {object_id[:12]}", f"it has {stored.get(name)} bytes", "")
        return [name for name in sizes if here is not None and (here / name).is_file()]

    def prepare(self) -> None:
        self._logs.create()

    def pull(self, known: Callable[[], Lines], take: Callable[[Lines], None]) -> None:
        self._logs.pull(known, take)

    def publish(self, log: str, number: int, line: bytes) -> None:
        for lease in self._leases.lost:
            remedy = "Run again: finished parts are reused."
            raise LockedError(f"lease {lease.key}", "another process took it over from this one", "", remedy)
        self._logs.publish(log, number, line, self._collection)

    @contextmanager
    def lease(self, name: str, who: str, wait_seconds: float, on_wait: Callable[[str], None]) -> Iterator[None]:
        with self._leases.held(f"leases/corpora/{name}", who, wait_seconds, on_wait, f"{name} in {self.address}"):
            yield

    def leased(self, folder: str) -> list[str]:
        return self.client.names(f"leases/corpora/{folder}")

    @contextmanager
    def in_use(self, alone: bool, wait_seconds: float) -> Iterator[None]:
        if self._num_users:
            yield
        elif alone:
            with self._leases.held(_ALONE, "gc", wait_seconds, lambda holder: None, f"store {self.address}"):
                if holder := self._leases.living(self._users, wait_seconds):
                    raise LockedError(f"store {self.address}", f"it is used by {holder}", "", WAIT_REMEDY)
                self._logs.begin_collection()
                with self._counted():
                    yield
        else:
            with self._registered(wait_seconds), self._counted():
                yield

    def trim(self) -> None:
        """Remove what was used longest ago until the cache is within its bound; of an object the manifest stays."""
        found = [path for folder in ("objects", "blobs") for path in (self.root / folder).rglob("*") if path.is_file()]
        states = sorted(
            (max(state.st_atime, state.st_mtime), str(path), state)
            for path, state in ((path, path.stat()) for path in found)
        )
        excess = sum(state.st_size for *_, state in states) - _bound()
        for _, path, state in states:
            if excess > 0 and not path.endswith(f"/{_MANIFEST}"):
                remove(Path(path))
                excess -= state.st_size

    def refresh(self) -> None:
        if BucketClient(self._address, _FIRST_RETRIES).has("format") or not (self.root / "format").exists():
            return
        make_folder(self.root / "locks")
        path = self.root / "locks" / ".use"
        with path.open("a+") as file, suppress(LockedError):  # a process that makes the store holds it
            acquire(file.fileno(), path, f"store {self.address}", 0.0, lambda holder: None)
            for each in self.root.iterdir():
                if each.name not in (CACHE_MARK, "locks"):
                    remove(each)

    def refuse(self, what: str) -> None:
        remedy = "Use a store in a folder."
        raise StoreError(f"store {self.address}", f"{what} is not supported in a bucket", "", remedy)

    @contextmanager
    def _registered(self, wait_seconds: float) -> Iterator[None]:
        """Hold a lease of this process, as soon as nobody holds the store alone; none where these credentials can write none."""
        with ExitStack() as stack:
            key = f"{_USE}/{os.uname().nodename}-{os.getpid()}-{id(self)}"
            with suppress(RefusedError):
                stack.enter_context(self._leases.held(key, "a reader or writer", 0.0, lambda holder: None, key))
            if holder := self._leases.living(lambda: [_ALONE], wait_seconds):
                raise LockedError(f"store {self.address}", f"it is held by {holder}", "", WAIT_REMEDY)
            self._collection = self._logs.current_collection()
            yield

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._num_users += 1
        try:
            yield
        finally:
            self._num_users -= 1
            self._present.clear()
            self._read.clear()
            self._listed.clear()
            self._collection = None

    def _users(self) -> list[str]:
        return [f"{_USE}/{name}" for name in self.client.names(_USE)]

    def _fetch_manifests(self) -> list[str]:
        """Fetch all manifests, remove from the cache what is no longer an object, and return what is wrong with manifests."""
        stored = {name.partition("/")[0] for name in self.client.sizes("objects") if name.endswith(f"/{_MANIFEST}")}
        here = {path.parent.name: path.parent for path in self.root.glob(f"objects/*/*/*/{_MANIFEST}")}
        for object_id in sorted(here.keys() - stored):
            remove(here[object_id])
        wrong: list[str] = []

        def fetch(object_id: str) -> None:
            try:
                self.fetch_object(object_id)
            except DamagedError as error:
                wrong.append(str(error))

        self._at_once(fetch, sorted(stored - here.keys()))
        return sorted(wrong)

    def _keep_manifest(self, object_id: str, content: bytes) -> None:
        subject, remedy = f"object {object_id[:12]}", DAMAGE_REMEDY
        if (found := sha256(content).hexdigest()) != object_id:
            raise DamagedError(subject, f"its manifest hashes to {found[:12]}", "its own name", remedy)
        kind = str(parse_json(content)["kind"])
        if len(parts := kind.split("/")) != 2 or not all(part and part.strip(".") for part in parts):
            raise DamagedError(subject, f"its kind is {kind[:80]!r}", "a stage and a part", remedy)
        self._keep(f"objects/{kind}/{object_id}/{_MANIFEST}", content)

    def _folder_of(self, object_id: str) -> Path | None:
        return next(iter(self.root.glob(f"objects/*/*/{object_id}")), None)

    def _download(self, place: str) -> bool:
        """Replace a file by the one in the bucket, if that is there."""
        target = self._target(place)
        arriving = hidden_sibling(target)
        try:
            if not self.client.download(_key(place), arriving):
                return False
            os.replace(arriving, target)
        finally:
            arriving.unlink(missing_ok=True)
        return True

    def _keep(self, place: str, content: bytes) -> None:
        """Write a file of the cache whole, unless it is here as it is. It is not synced: the bucket has it."""
        target = self._target(place)
        if target.is_file() and target.read_bytes() == content:
            return
        arriving = hidden_sibling(target)
        arriving.write_bytes(content)
        os.replace(arriving, target)

    def _target(self, place: str) -> Path:
        if not {"", ".", ".."}.isdisjoint(place.split("/")):
            raise DamagedError(f"key {place!r:.200}", "it leads out of the store", "", "Remove it from the bucket.")
        (self.root / place).parent.mkdir(parents=True, exist_ok=True)
        return self.root / place

    def _at_once(self, function: Callable[[str], object], names: Iterable[str]) -> None:
        with ThreadPoolExecutor(_NUM_THREADS) as pool:
            list(pool.map(function, names))  # raises the first error


def cache_of(text: str) -> Path:
    """Return the folder of the cache of the store at an address, made if there is none. Raises ParamsError."""
    given = parse_address(text)
    endpoint = given.endpoint or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    address = BucketAddress(given.bucket, given.prefix, endpoint)
    base = Path(os.environ.get(CACHE) or Path.home() / ".cache" / "sluice" / "buckets")
    root = base.absolute() / f"{address.bucket}-{text_sha256(address.text)[:16]}"
    make_folder(root)
    if not (root / CACHE_MARK).is_file():
        replace(root / CACHE_MARK, canonical_json({**vars(address), "cache": secrets.token_hex(8)}))
    return root


def _parsed_mark(root: Path) -> tuple[BucketAddress, str]:
    """Return the address in the mark of a cache, and the name of the cache. Raises DamagedError."""
    try:
        mark = parse_json((root / CACHE_MARK).read_bytes())
        name = str(mark.pop("cache"))
        return BucketAddress(**mark), name
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        remedy = "Remove that folder: whatever counts in it is in the bucket."
        raise DamagedError(f"cache {root}", f"its file {CACHE_MARK} is not as written", "", remedy) from error


def _bound() -> int:
    text = os.environ.get(CACHE_BYTES) or str(_CACHE_BYTES)
    if not text.isdecimal():
        raise ParamsError(CACHE_BYTES, f"it is {text[:80]!r}", "a number of bytes", "Correct it.")
    return int(text)


def _key(place: str) -> str:
    """Return the key of a file. Objects are found by their ids alone."""
    parts = place.split("/")
    return "/".join(["objects", *parts[3:]]) if parts[0] == "objects" and len(parts) > 3 else place
