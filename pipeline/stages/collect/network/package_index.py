"""PackageIndex: source distributions in the package index that pip is configured with.

Only links and files are requested. `pip download` is never run: it executes the project's build code. The digest of a
file is taken from its link, in the fragment of an HTML page (PEP 503) or in JSON (PEP 691).
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import httpx2
from packaging.version import InvalidVersion, Version
from unearth import Package, PackageFinder
from unearth.link import Link

from pipeline.core.errors import DigestError, FetchError, SourceError
from pipeline.stages.collect.network.download import TransientError, download, open_session, reason_of, status_failure
from pipeline.stages.collect.params import RetryPolicy

_SUFFIXES = (".tar.gz", ".tar.bz2", ".tar.xz", ".zip")
_SECTIONS = ("global", "install", "download", ":env:")
"""pip's sections; later ones override earlier ones: files first, then the environment."""


class IndexedFile(Protocol):
    """The fields of a pin by which its file is found in an index."""

    name: str
    project: str
    version: str
    file_name: str
    sha256: str


@dataclass(frozen=True)
class IndexConfiguration:
    """Locations that pip searches for packages, and its settings for connecting to them."""

    index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    certificate: str | None = None


def pip_configuration(python: str = sys.executable) -> IndexConfiguration:
    """Return pip's configuration from `pip config list`: files of all levels and the environment.

    Uses index-url, extra-index-url, find-links, no-index, trusted-host and cert. Raises FetchError if pip cannot be run.
    """
    command = [python, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if result.returncode:
        remedy = "Install pip into this environment: its configuration names the package index."
        raise FetchError("pip's configuration", f"`{' '.join(command[1:])}` failed", "the configured index", remedy)
    return configuration_of(_options(result.stdout))


def configuration_of(options: Mapping[str, str]) -> IndexConfiguration:
    """Return the configuration from pip's options by name. Folders that do not exist are skipped, as in pip."""
    urls = [options.get("index-url") or default_index(), *options.get("extra-index-url", "").split()]
    indexes = [url if "://" in url else Path(url).expanduser().absolute().as_uri() for url in urls]
    without_index = options.get("no-index", "").lower() in ("1", "true", "yes", "on")
    pages = [page if "://" in page else os.path.expanduser(page) for page in options.get("find-links", "").split()]
    return IndexConfiguration(
        index_urls=() if without_index else tuple(indexes),
        find_links=tuple(page for page in pages if "://" in page or os.path.exists(page)),
        trusted_hosts=tuple(options.get("trusted-host", "").split()),
        certificate=options.get("cert") or None,
    )


def default_index() -> str:
    """Return the index that is used if none is configured."""
    return PackageFinder().sources[0]["url"]


def link_sha256(link: Link) -> str | None:
    """Return the digest in a link to a file, or None."""
    return (link.hash_option or {}).get("sha256", [None])[0]


class PackageIndex:
    """The configured locations, and one session for all requests to them."""

    def __init__(self, configuration: IndexConfiguration, retry: RetryPolicy) -> None:
        self._configuration = configuration
        self._retry = retry
        self.session = open_session(
            retry, configuration.index_urls, configuration.trusted_hosts, configuration.certificate
        )
        self._is_unreachable = False  # once all retries failed for one pin, each other pin gets one attempt
        hooks = self.session.event_hooks
        self.session.event_hooks = {**hooks, "response": [*hooks["response"], _raise_transient_failure]}

    def fetch(self, pin: IndexedFile, partial: Path) -> None:
        """Download a pin's archive into the file `partial`, not yet verified. Raises FetchError, DigestError."""
        self.download(self.find(pin), partial, pin.sha256)

    def download(self, link: Link, partial: Path, sha256: str) -> None:
        """Download a file into `partial`; only a continued download is checked against `sha256`. Raises FetchError."""
        download(self.session, link.normalized, partial, sha256, self._retry)

    def find(self, pin: IndexedFile) -> Link:
        """Return the link of the pinned file. Raises FetchError with every location tried, DigestError for another digest."""
        tried: list[str] = []
        offered: list[Link] = []
        was_unreachable = self._is_unreachable
        for _ in self._retry.attempts():
            offered, has_failed = self._offers(pin, tried)
            is_found = any(link_sha256(link) == pin.sha256 for link in offered)
            self._is_unreachable = has_failed and not offered
            if is_found or not has_failed or was_unreachable:
                break
        if offered:
            return _matching(offered, pin)
        found = f"{pin.file_name} was not found ({'; '.join(dict.fromkeys(tried)) or 'no index is configured'})"
        remedy = "Check project, version and file name of the pin, and `python -m pip config list`."
        raise FetchError(pin.name, found, f"a link to {pin.project} {pin.version} in the package index", remedy)

    def release(self, project: str, version: str | None) -> Package:
        """Return a source distribution of a release, by default the newest stable one. Raises FetchError."""
        usable = [package for package in self._sdists(project) if _format_of(package) is not None]
        wanted = [p for p in usable if version == p.version or (version is None and _is_stable(_version_of(p)))]
        if wanted:
            return max(wanted, key=lambda package: (_version_of(package), -(_format_of(package) or 0)))
        versions = dict.fromkeys(package.version or "" for package in sorted(usable, key=_version_of, reverse=True))
        offered = ", ".join(list(versions)[:10]) or "none"
        found = f"the index offers no source distribution of {f'version {version}' if version else 'a stable release'}"
        remedy = "Choose one of them with `--version`, or check `python -m pip config list`."
        raise FetchError(project, found, f"one of the versions there ({offered})", remedy)

    def _sdists(self, project: str) -> list[Package]:
        """Return the source distributions of a project, without yanked ones, at the first location with any."""
        tried: list[str] = []
        for _, packages in self._answers(project, tried, allow_yanked=False):
            if packages:
                return packages
        if tried:
            remedy = "Check the network and `python -m pip config list`, then run again."
            raise FetchError(project, f"no release was found ({'; '.join(tried)})", "an index that answers", remedy)
        return []

    def _offers(self, pin: IndexedFile, tried: list[str]) -> tuple[list[Link], bool]:
        """Return the links to a file of that name, and whether a retry may help. Stops at a link with the pinned digest."""
        offered: list[Link] = []
        has_failed = False
        for shown, packages in self._answers(pin.project, tried, allow_yanked=True):
            if packages is None:
                has_failed = True
                continue
            tried.append(f"{shown}: not among {len(packages)} archives")
            offered += [package.link for package in packages if package.link.filename == pin.file_name]
            if any(link_sha256(link) == pin.sha256 for link in offered):
                break
        return offered, has_failed

    def _answers(
        self, project: str, tried: list[str], allow_yanked: bool
    ) -> Iterator[tuple[str, list[Package] | None]]:
        """Yield each location with its packages, or None if it fails; pages of links first: they may be enough."""
        pages, indexes = self._configuration.find_links, self._configuration.index_urls
        for location, is_index in [*((page, False) for page in pages), *((url, True) for url in indexes)]:
            finder = PackageFinder(
                self.session,  # type: ignore[arg-type]  # the finder's own client does not match the finder's protocol
                index_urls=[location] if is_index else [],
                find_links=[] if is_index else [location],
                ignore_compatibility=True,
                no_binary=[":all:"],
            )
            shown = Link(location).redacted
            try:
                yield shown, list(finder.find_all_packages(project, allow_yanked=allow_yanked))
            except (TransientError, httpx2.HTTPError) as error:
                tried.append(f"{shown}: {reason_of(error)}")
                yield shown, None
            except SourceError:
                raise
            except Exception as error:  # the finder raises whatever a page makes its code raise
                tried.append(f"{shown}: its page cannot be read ({type(error).__name__})")
                yield shown, []


def _matching(offered: list[Link], pin: IndexedFile) -> Link:
    """Return the link with the pinned digest, else one without a digest, whose bytes are verified later."""
    best = next((link for link in offered if link_sha256(link) == pin.sha256), None)
    best = best or next((link for link in offered if link_sha256(link) is None), None)
    if best is None:
        found = f"the index offers {pin.file_name} with sha256 {link_sha256(offered[0])}"
        remedy = "The file was replaced, or the pin has a typo: compare with another index before changing the pin."
        raise DigestError(pin.name, found, pin.sha256, remedy)
    return best


def _format_of(package: Package) -> int | None:
    """Return the rank of the archive's format, the preferred one first, or None for another file."""
    return next((rank for rank, suffix in enumerate(_SUFFIXES) if package.link.filename.endswith(suffix)), None)


def _version_of(package: Package) -> Version:
    """Return the version for comparison; one that cannot be parsed comes before all others."""
    try:
        return Version(package.version or "0")
    except InvalidVersion:
        return Version("0")


def _is_stable(version: Version) -> bool:
    return version > Version("0") and not version.is_prerelease


def _raise_transient_failure(response: httpx2.Response) -> None:
    # The finder treats any failed page as an empty one; a temporary failure must not look like a missing release.
    failure = status_failure(response)
    if failure:
        raise TransientError(failure)


def _options(listing: str) -> dict[str, str]:
    """Return the options by name from lines such as `global.find-links='/a /b'`, whatever their section."""
    sections: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in listing.splitlines():
        key, equals, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if equals and section in sections:
            sections[section][name] = str(ast.literal_eval(value))
    return {name: value for section in _SECTIONS for name, value in sections[section].items()}
