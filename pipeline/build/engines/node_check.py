"""Node check: whether a worker of another process or machine would make the bytes that this one makes."""

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pipeline.core.digests import code_digest
from pipeline.stages.stages import STAGES


@dataclass(frozen=True)
class NodeView:
    """View of a process: what bytes of a part depend on besides its inputs, and what it reads in the folder of the build."""

    code: str
    """SHA-256 of the modules of the pipeline."""
    versions: dict[str, str]
    """Of Python, the machine's architecture, and the libraries that a stage names: empty for one that is not installed."""
    token: str
    """The content of the file of the build that was shown; empty where there is none."""


def node_view(token: Path) -> NodeView:
    """Return the view of this process; `token` is a file that the build has written into its folder."""
    names = sorted({name for stage in STAGES for name in stage.library_names()})
    versions = {"Python": platform.python_version(), "machine": platform.machine()}
    read = token.read_text(encoding="utf-8") if token.is_file() else ""
    return NodeView(code_digest(), versions | {name: _version(name) for name in names}, read)


def node_differences(here: NodeView, there: NodeView) -> str:
    """Return in words what another process has otherwise than this one; empty if it makes the same bytes."""
    return "; ".join(_node_differences(here, there))


def _node_differences(here: NodeView, there: NodeView) -> Iterator[str]:
    if there.token != here.token:
        yield "it does not see the folder of the store"
    if there.code != here.code:
        yield f"the code of its pipeline is {there.code[:12]} and not {here.code[:12]}"
    for name, found in here.versions.items():
        if there.versions.get(name, "") != found:
            yield f"its {name} is {there.versions.get(name) or 'not installed'} and not {found or 'not installed'}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
