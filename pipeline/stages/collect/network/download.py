"""Downloads: a file arrives completely or not at all. An interrupted download is kept and continued."""

import ssl
from pathlib import Path
from typing import BinaryIO

import httpx2
from unearth.auth import MultiDomainBasicAuth
from unearth.fetchers import PyPIClient
from unearth.link import Link

from pipeline.core.digests import file_sha256
from pipeline.core.errors import FetchError
from pipeline.stages.collect.params import RetryPolicy

MAX_REDIRECTS = 10
"""Maximum number of redirects in a row."""

_RETRIED_CLIENT_ERRORS = frozenset({408, 425, 429})


class TransientError(Exception):
    """A failed transfer that a retry may help."""


def open_session(
    retry: RetryPolicy,
    index_urls: tuple[str, ...] = (),
    trusted_hosts: tuple[str, ...] = (),
    certificate: str | None = None,
) -> PyPIClient:
    """Open a session that follows redirects; credentials come from index URLs, netrc or keyring, never from a prompt."""
    session = PyPIClient(
        trusted_hosts=trusted_hosts,
        verify=_tls_context(certificate) if certificate else True,
        timeout=retry.stall_timeout_seconds,
        follow_redirects=True,
        max_redirects=MAX_REDIRECTS,
        event_hooks={"response": [_refuse_redirect_to_file]},
    )
    session.auth = MultiDomainBasicAuth(prompting=False, index_urls=index_urls)
    return session


def download(session: PyPIClient, url: str, partial: Path, sha256: str, retry: RetryPolicy) -> None:
    """Download `url` into the file `partial`, continuing what it holds if the server supports that.

    The declared length must arrive completely, and no more than `retry.max_num_bytes`. A continued file with another digest
    is downloaded again; the caller checks the digest of any other. Raises FetchError after the last attempt.
    """
    shown = Link(url).redacted
    failures: list[str] = []
    for _ in retry.attempts():
        num_bytes_before = partial.stat().st_size if partial.exists() else 0
        try:
            _continue_download(session, url, partial, retry.max_num_bytes)
        except httpx2.TooManyRedirects as error:
            remedy = "Open the address in a browser, and correct the pin."
            raise FetchError(shown, f"redirects more than {MAX_REDIRECTS} times", "the file", remedy) from error
        except (TransientError, httpx2.HTTPError) as error:
            failures.append(reason_of(error))
        else:
            if not num_bytes_before or file_sha256(partial) == sha256:
                return
            partial.unlink()
            failures.append(f"the download continued from byte {num_bytes_before} has another digest")
    tried = "; ".join(f"attempt {number}: {failure}" for number, failure in enumerate(failures, start=1))
    remedy = "Check the network and run again: what has arrived is kept and continued."
    raise FetchError(shown, f"could not be downloaded ({tried})", "the whole file", remedy)


def reason_of(error: Exception) -> str:
    """Return a short reason without any address, since addresses may contain credentials."""
    if isinstance(error, httpx2.TimeoutException):
        return f"stalled ({type(error).__name__})"
    return str(error) or type(error).__name__


def status_failure(response: httpx2.Response) -> str | None:
    """Return the failure if a retry may help: statuses 408, 425, 429 and 5xx. None for any other status."""
    status = response.status_code
    return f"the server answered {status}" if status >= 500 or status in _RETRIED_CLIENT_ERRORS else None


def _tls_context(certificate: str) -> ssl.SSLContext:
    path = Path(certificate).expanduser()
    if not path.exists():
        remedy = "Correct it with `python -m pip config set global.cert FILE`."
        found = f"names {certificate!r}, which does not exist"
        raise FetchError("pip's option `cert`", found, "a bundle of certificates", remedy)
    if path.is_dir():
        return ssl.create_default_context(capath=str(path))
    return ssl.create_default_context(cafile=str(path))


def _refuse_redirect_to_file(response: httpx2.Response) -> None:
    # The session reads `file:` addresses too, for indexes on this machine; a server must not redirect to them.
    if not response.has_redirect_location:
        return
    shown = Link(str(response.request.url)).redacted
    remedy = "Correct the pin, and report it to the administrator of that server."
    try:
        target = response.request.url.join(response.headers["Location"])
    except (httpx2.InvalidURL, ValueError) as error:
        found = response.headers["Location"][:200]
        raise FetchError(shown, f"redirects to {found!r}", "an address", remedy) from error
    if target.scheme not in ("http", "https"):
        raise FetchError(shown, f"redirects to a `{target.scheme}:` address", "one of http or https", remedy)


def _continue_download(session: PyPIClient, url: str, partial: Path, max_num_bytes: int) -> None:
    start = partial.stat().st_size if partial.exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with session.get_stream(url, headers=headers) as response:
        if response.status_code == 416:
            partial.unlink()
            raise TransientError(f"the server has no bytes from {start} on")
        _check_status(response, Link(url).redacted)
        content_range = response.headers.get("Content-Range", "")
        continued = response.status_code == 206 and content_range.startswith(f"bytes {start}-")
        if response.status_code == 206 and not continued:
            partial.unlink(missing_ok=True)
            raise TransientError(f"the server did not continue at byte {start}")
        with partial.open("ab" if continued else "wb") as file:
            _receive(response, file, max_num_bytes - file.tell())


def _receive(response: httpx2.Response, file: BinaryIO, max_num_bytes: int) -> None:
    """Write the body. Raises FetchError if it is longer than allowed, or declares to be; TransientError if it is cut."""
    header = response.headers.get("Content-Length", "")
    declared = int(header) if header.isdecimal() else 0
    num_bytes = 0
    # iter_raw: an archive served with `Content-Encoding: gzip` must not be decompressed
    for block in response.iter_raw() if declared <= max_num_bytes else ():
        num_bytes += file.write(block)
        if num_bytes > max_num_bytes:
            break
    if max(declared, num_bytes) > max_num_bytes:
        found = f"sends {declared or f'more than {max_num_bytes}'} bytes"
        remedy = "Check the address; what has arrived is kept."
        raise FetchError(Link(str(response.url)).redacted, found, f"at most {max_num_bytes} bytes more", remedy)
    if header.isdecimal() and num_bytes != declared:
        raise TransientError(f"{num_bytes} of {declared} bytes arrived")


def _check_status(response: httpx2.Response, shown: str) -> None:
    failure = status_failure(response)
    if failure:
        raise TransientError(failure)
    if not response.is_success:
        remedy = "Check that the release still exists, or correct the pin."
        raise FetchError(shown, f"the server answered {response.status_code}", "the file", remedy)
