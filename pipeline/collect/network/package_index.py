"""Source distributions, found through the package index that pip is configured with.

Only links and bytes are asked for. `pip download` is never run: it executes the project's build code. The digest of a
file is taken from its link, in the fragment of an HTML page (PEP 503) or in JSON (PEP 691): nothing else is needed.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx2
from unearth import Package, PackageFinder
from unearth.link import Link

from pipeline.collect.network.download import TransientError, download, open_session, reason_of, status_failure
from pipeline.collect.network.retry import Patience
from pipeline.core.errors import DigestError, FetchError
from pipeline.pins.pins import SdistPin

_SECTIONS = ("global", "install", "download", ":env:")
"""pip's sections, the later ones winning: files first, then the environment."""


@dataclass(frozen=True)
class IndexConfiguration:
    """Where pip looks for packages, and how it is let in there."""

    index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    certificate: str | None = None

    @property
    def locations(self) -> list[tuple[str, bool]]:
        """Each place and whether it is an index: collections of links first, since they may spare the index."""
        return [(place, False) for place in self.find_links] + [(url, True) for url in self.index_urls]


def pip_configuration(python: str = sys.executable) -> IndexConfiguration:
    """What `pip config list` says: files of all levels and the environment. Raises FetchError when pip cannot be asked.

    Read are index-url, extra-index-url, find-links, no-index, trusted-host and cert.
    """
    command = [python, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if result.returncode:
        remedy = "Install pip into this environment: it knows which package index is in use."
        raise FetchError("pip's configuration", f"`{' '.join(command[1:])}` failed", "the configured index", remedy)
    return configuration_of(_options(result.stdout))


def configuration_of(options: Mapping[str, str]) -> IndexConfiguration:
    """The configuration from pip's options by name. Folders that do not exist are passed over, as pip does."""
    urls = [options.get("index-url") or default_index(), *options.get("extra-index-url", "").split()]
    indexes = [url if "://" in url else Path(url).expanduser().absolute().as_uri() for url in urls]
    without_index = options.get("no-index", "").lower() in ("1", "true", "yes", "on")
    places = [place if "://" in place else os.path.expanduser(place) for place in options.get("find-links", "").split()]
    return IndexConfiguration(
        index_urls=() if without_index else tuple(indexes),
        find_links=tuple(place for place in places if "://" in place or os.path.exists(place)),
        trusted_hosts=tuple(options.get("trusted-host", "").split()),
        certificate=options.get("cert") or None,
    )


def default_index() -> str:
    """The index that is searched when none is configured."""
    return PackageFinder().sources[0]["url"]


def link_sha256(link: Link) -> str | None:
    """The digest that a link to a file carries, or None."""
    return (link.hash_option or {}).get("sha256", [None])[0]


class PackageIndex:
    """The configured index and collections, and one session for all requests to them."""

    def __init__(self, configuration: IndexConfiguration, patience: Patience) -> None:
        self._configuration = configuration
        self._patience = patience
        self.session = open_session(
            patience, configuration.index_urls, configuration.trusted_hosts, configuration.certificate
        )
        self._is_out_of_reach = False  # once nothing helped for one pin, the others are asked for once each
        hooks = self.session.event_hooks
        self.session.event_hooks = {**hooks, "response": [*hooks["response"], _raise_passing_trouble]}

    def fetch(self, pin: SdistPin, partial: Path) -> None:
        """Bring a pin's archive into the file `partial`, unjudged. Raises FetchError, DigestError."""
        self.download(self.find(pin), partial, pin.sha256)

    def download(self, link: Link, partial: Path, sha256: str) -> None:
        """Bring a file into `partial`, unjudged; `sha256` decides whether a continued download is used. Raises FetchError."""
        download(self.session, link.normalized, partial, sha256, self._patience)

    def find(self, pin: SdistPin) -> Link:
        """The link of the pinned file. Raises FetchError with all that was tried, DigestError for another digest."""
        tried: list[str] = []
        offered: list[Link] = []
        num_attempts = 1 if self._is_out_of_reach else self._patience.num_attempts
        for attempt in range(1, num_attempts + 1):
            offered, troubles = self._offers(pin, tried)
            found_it = any(link_sha256(link) == pin.sha256 for link in offered)
            self._is_out_of_reach = troubles and not offered
            if found_it or not troubles or attempt == num_attempts:
                break
            self._patience.wait(attempt)
        if offered:
            return _matching(offered, pin)
        found = f"{pin.file_name} was not found ({'; '.join(dict.fromkeys(tried)) or 'no index is configured'})"
        remedy = "Check project, version and file name of the pin, and `python -m pip config list`."
        raise FetchError(pin.name, found, f"a link to {pin.project} {pin.version} in the package index", remedy)

    def sdists(self, project: str) -> list[Package]:
        """The source distributions of a project, yanked ones left out, of the first place that has any. Raises FetchError."""
        tried: list[str] = []
        for place, is_index in self._configuration.locations:
            try:
                packages = self._packages(place, is_index, project, allow_yanked=False)
            except (TransientError, httpx2.HTTPError) as error:
                tried.append(f"{Link(place).redacted}: {reason_of(error)}")
                continue
            if packages:
                return packages
        if tried:
            remedy = "Check the network and `python -m pip config list`, then run again."
            raise FetchError(project, f"no release was found ({'; '.join(tried)})", "an index that answers", remedy)
        return []

    def _offers(self, pin: SdistPin, tried: list[str]) -> tuple[list[Link], bool]:
        """The links to a file of that name, and whether another attempt may help. Stops at the right one."""
        offered: list[Link] = []
        troubles = False
        for place, is_index in self._configuration.locations:
            shown = Link(place).redacted
            try:
                links = [package.link for package in self._packages(place, is_index, pin.project)]
            except (TransientError, httpx2.HTTPError) as error:
                tried.append(f"{shown}: {reason_of(error)}")
                troubles = True
                continue
            tried.append(f"{shown}: not among {len(links)} archives")
            offered += [link for link in links if link.filename == pin.file_name]
            if any(link_sha256(link) == pin.sha256 for link in offered):
                break
        return offered, troubles

    def _packages(self, place: str, is_index: bool, project: str, allow_yanked: bool = True) -> list[Package]:
        finder = PackageFinder(
            self.session,  # type: ignore[arg-type]  # the finder's own client does not match the finder's protocol
            index_urls=[place] if is_index else [],
            find_links=[] if is_index else [place],
            ignore_compatibility=True,
            no_binary=[":all:"],
        )
        return list(finder.find_all_packages(project, allow_yanked=allow_yanked))


def _matching(offered: list[Link], pin: SdistPin) -> Link:
    """The link with the pinned digest; failing that, one without any, whose bytes will be judged."""
    best = next((link for link in offered if link_sha256(link) == pin.sha256), None)
    best = best or next((link for link in offered if link_sha256(link) is None), None)
    if best is None:
        found = f"the index offers {pin.file_name} with sha256 {link_sha256(offered[0])}"
        remedy = "The file was replaced, or the pin was mistyped: compare with another index before changing the pin."
        raise DigestError(pin.name, found, pin.sha256, remedy)
    return best


def _raise_passing_trouble(response: httpx2.Response) -> None:
    """The finder takes any failed page for an empty one; a passing trouble must not look like a missing release."""
    failure = status_failure(response)
    if failure:
        raise TransientError(failure)


def _options(listing: str) -> dict[str, str]:
    """Options by name from lines such as `global.find-links='/a /b'`, whatever section they stand in."""
    sections: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in listing.splitlines():
        key, equals, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if equals and section in sections:
            sections[section][name] = str(ast.literal_eval(value))
    return {name: value for section in _SECTIONS for name, value in sections[section].items()}
