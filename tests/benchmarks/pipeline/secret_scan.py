"""The secret scan beside the tool that it is made of, on the same files."""

import tempfile
import time
from pathlib import Path

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.core.scan import scan_file
from detect_secrets.settings import default_settings

from pipeline.stages.normalize.scrub.secrets import scan_secrets
from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.slices import sample
from tests.support.planted_secrets import lines_by_plugin

NUM_BYTES = 1_000_000
NUM_TURNS = 3
REACH, REACH_RATIO = 25.0, 100.0


def secrets() -> list[Figure]:
    """MB/s of one core over real files and a planted secret for every plugin, and whether both find the same.

    The tool reads the files once, we in each turn.
    """
    planted = [line for _, lines in sorted(lines_by_plugin().items()) for line in lines]
    chosen = [*sample("quick", NUM_BYTES), "\n".join(planted)]
    megabytes = sum(len(text.encode()) for text in chosen) / 1e6
    theirs, tool_seconds = _scan_with_the_tool(chosen)
    turns = [_scan(chosen) for _ in range(NUM_TURNS)]
    ours = turns[0][0]
    speed = megabytes / min(seconds for _, seconds in turns)
    tool_speed = megabytes / tool_seconds
    ratio = round(speed / tool_speed, 1)
    peer = "detect-secrets scan_file, MB/s, same files"
    missed, more = len(theirs - ours), len(ours - theirs)
    return [
        Figure(
            "secrets",
            round(speed, 1),
            "MB/s of one core's time",
            ">= 25 MB/s",
            speed >= REACH,
            peer,
            round(tool_speed, 3),
            ratio,
        ),
        Figure("secrets/ratio", ratio, "times the tool", ">= 100", ratio >= REACH_RATIO),
        Figure("secrets/missed", missed, "findings of the tool", "0", missed == 0),
        Figure("secrets/more", more, f"findings beside the tool's {len(theirs)}", "0", more == 0),
    ]


def _scan(chosen: list[str]) -> tuple[set[tuple[int, str, str]], float]:
    with default_settings():
        started = time.process_time()
        found = {
            (index, secret.plugin, secret.value) for index, text in enumerate(chosen) for secret in scan_secrets(text)
        }
        return found, time.process_time() - started


def _scan_with_the_tool(chosen: list[str]) -> tuple[set[tuple[int, str, str]], float]:
    with tempfile.TemporaryDirectory() as folder, default_settings():
        names = {kind: plugin.__name__ for kind, plugin in get_mapping_from_secret_type_to_class().items()}
        paths = [Path(folder) / f"{index}.cpp" for index in range(len(chosen))]
        for path, text in zip(paths, chosen, strict=True):
            path.write_text(text, encoding="utf-8")
        started = time.process_time()
        found = {
            (index, names[secret.type], str(secret.secret_value))
            for index, path in enumerate(paths)
            for secret in scan_file(str(path))
        }
        return found, time.process_time() - started
