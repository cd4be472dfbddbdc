"""Client of a bucket: requests by obstore, tried again where that is safe, and errors in words."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from pipeline.core.errors import ParamsError, StoreError

ResultT = TypeVar("ResultT")
_NUM_TRIES = 5
"""Times that a body is read which a cut connection ends."""
_MAX_RETRIES = 8
"""Times that a request is repeated that gets no answer, or one of an overloaded server, in 25 s at most."""
_CHUNK_SIZE = 4 << 20
_CUT = "response body error"
"""Words of the error of obstore for an answer that ends early."""
_EXPECTED = "s3://BUCKET/PREFIX, or s3://BUCKET/PREFIX?endpoint=URL"


@dataclass(frozen=True)
class BucketAddress:
    """The address of a store in a bucket."""

    bucket: str
    prefix: str
    endpoint: str = ""

    @property
    def text(self) -> str:
        """The address as `--store` takes it."""
        return f"s3://{self.bucket}/{self.prefix}" + (f"?endpoint={self.endpoint}" if self.endpoint else "")


def parse_address(text: str) -> BucketAddress:
    """Parse `--store s3://BUCKET/PREFIX`. Raises ParamsError."""
    parts = urlsplit(text)
    query = parse_qs(parts.query, keep_blank_values=True)
    prefix = parts.path.strip("/")
    endpoint = query.get("endpoint", [""])[0]
    is_sound = parts.netloc and prefix and ".." not in prefix.split("/") and "//" not in prefix and not parts.fragment
    if not is_sound or query.keys() - {"endpoint"} or not (endpoint or "endpoint" not in query):
        raise ParamsError(
            f"store {text[:200]}", "it is no address of a store in a bucket", _EXPECTED, "Correct --store."
        )
    return BucketAddress(parts.netloc, prefix, endpoint.rstrip("/"))


class RefusedError(StoreError):
    """The server takes no such request from these credentials."""


class _CutError(Exception):
    """A connection that ended before a body did."""


class BucketClient:
    """A client of all keys below the prefix of an address. Keys are `objects/<id>/<name>` and so on."""

    def __init__(self, address: BucketAddress, max_retries: int = _MAX_RETRIES) -> None:
        self.address = address
        try:
            # Not by an import statement: no proof of the trainer depends on which library carries the bytes.
            self._errors: Any = import_module("obstore.exceptions")
            stores: Any = import_module("obstore.store")
        except ImportError as error:
            remedy = "Install it: `pip install -e .[s3]`."
            raise StoreError(f"store {address.text}", f"obstore is not installed ({error})", "", remedy) from error
        options = {"endpoint": address.endpoint} if address.endpoint else {}
        with self._in_words():
            self._store: Any = stores.S3Store(
                address.bucket,
                prefix=address.prefix,
                client_options={"allow_http": True, "connect_timeout": "10s", "timeout": "300s"},
                retry_config={"max_retries": max_retries, "retry_timeout": timedelta(seconds=60)},
                **options,
            )

    def get(self, key: str, unless: str | None = None) -> tuple[bytes, str] | None:
        """Return the bytes of a key and their tag; None where there is none, and where it is still the one of the tag `unless`."""

        def read() -> tuple[bytes, str] | None:
            try:
                found = self._store.get(key, options={"if_none_match": unless} if unless else None)
            except self._errors.NotModifiedError:
                return None
            with self._whole():
                return bytes(found.bytes()), str(found.meta["e_tag"])

        return self._tried(read)

    def download(self, key: str, path: Path) -> bool:
        """Write the bytes of a key into a file; False where there is none."""

        def read() -> bool:
            found = self._store.get(key)
            with path.open("wb") as file, self._whole():
                for chunk in found.stream(min_chunk_size=_CHUNK_SIZE):
                    file.write(chunk)
            return True

        return bool(self._tried(read))

    def sha256(self, key: str) -> str:
        """Return the digest of the bytes of a key, which are not kept. Raises FileNotFoundError."""

        def read() -> str:
            hasher, found = sha256(), self._store.get(key)
            with self._whole():
                for chunk in found.stream(min_chunk_size=_CHUNK_SIZE):
                    hasher.update(chunk)
            return hasher.hexdigest()

        found = self._tried(read)
        if found is None:
            raise FileNotFoundError(2, "it is not in the bucket", key)
        return found

    def put(self, key: str, content: bytes | Path) -> None:
        """Write a key whole, a large file in parts."""
        self._tried(lambda: self._store.put(key, content))

    def create(self, key: str, content: bytes) -> str | None:
        """Write a key that is not there, and return its tag; None if it is there."""
        with self._in_words():
            try:
                return str(self._store.put(key, content, mode="create")["e_tag"])
            except self._errors.AlreadyExistsError:
                return None

    def swap(self, key: str, content: bytes, tag: str) -> str | None:
        """Replace the bytes of a tag, and return the new tag; None if the key has others by now."""
        with self._in_words():
            try:
                return str(self._store.put(key, content, mode={"e_tag": tag})["e_tag"])
            except (self._errors.PreconditionError, self._errors.AlreadyExistsError, FileNotFoundError) as error:
                self._refuse_no_bucket(error)
                return None

    def has(self, key: str) -> bool:
        """Return whether there is such a key."""
        return self._tried(lambda: bool(self._store.head(key))) is not None

    def delete(self, key: str) -> None:
        """Remove a key, if it is there."""
        self._tried(lambda: self._store.delete(key))

    def names(self, folder: str) -> list[str]:
        """List what comes after `folder/` in keys, up to the next slash, sorted."""
        found: Any = self._tried(lambda: self._store.list_with_delimiter(folder))
        paths = [*found["common_prefixes"], *(each["path"] for each in found["objects"])]
        return sorted({path.rstrip("/").rpartition("/")[2] for path in paths})

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the bytes of each key below `folder/`, by what comes after it, sorted."""

        def read() -> dict[str, int]:
            return {each["path"]: each["size"] for page in self._store.list(folder) for each in page}

        found = self._tried(read) or {}
        return {path.removeprefix(f"{folder}/"): found[path] for path in sorted(found)}

    def refuse(self, found: str, expected: str, remedy: str) -> StoreError:
        """Return an error about the store."""
        return StoreError(f"store {self.address.text}", found, expected, remedy)

    def _tried(self, read: Callable[[], ResultT]) -> ResultT | None:
        """Return what `read` returns, None where there is no such key; a connection that is cut is tried again."""
        for number in range(_NUM_TRIES):
            with self._in_words():
                try:
                    return read()
                except FileNotFoundError as error:
                    self._refuse_no_bucket(error)
                    return None
                except (_CutError, self._errors.GenericError) as error:
                    is_cut = isinstance(error, _CutError) or _CUT in str(error)
                    if not is_cut or number == _NUM_TRIES - 1:
                        raise
            time.sleep(0.1 * 2**number)
        raise AssertionError

    def _refuse_no_bucket(self, error: Exception) -> None:
        if "NoSuchBucket" in str(error):
            raise self.refuse(
                f"there is no bucket {self.address.bucket}", "a bucket that is there", "Correct --store, or make it."
            ) from error

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Raise _CutError for a body that ends early. A request that gets no answer obstore has repeated itself."""
        try:
            yield
        except self._errors.GenericError as error:
            raise _CutError(_first_line(error)) from error

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            self._refuse_no_bucket(error)
            raise
        except _CutError as error:
            raise self.refuse(str(error), "a whole answer", "Check the network; then run again.") from error
        except (self._errors.PermissionDeniedError, self._errors.UnauthenticatedError) as error:
            expected, remedy = "credentials that may read and write it", "AWS_ACCESS_KEY_ID and what else AWS reads."
            found = f"the server refuses: {_first_line(error)}"
            raise RefusedError(f"store {self.address.text}", found, expected, f"Check {remedy}") from error
        except self._errors.NotSupportedError as error:
            raise self.refuse(_first_line(error), "a server with conditional puts", _CONDITIONAL) from error
        except self._errors.BaseError as error:
            self._refuse_no_bucket(error)
            remedy = "Check the address, AWS_ENDPOINT_URL, the network and the credentials; then run again."
            raise self.refuse(_first_line(error), "an answer", remedy) from error


_CONDITIONAL = "Refs cannot be moved safely without: use a server that answers If-Match and If-None-Match on puts."


def _first_line(error: Exception) -> str:
    """Return what an error says before the source of it, which obstore prints too, with the code that the server gave."""
    text = str(error)
    return " ".join(text.partition("Debug source")[0].split())[:400]
