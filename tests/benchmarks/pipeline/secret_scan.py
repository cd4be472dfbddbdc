"""The search for secrets beside detect-secrets on the same files, its recall and precision on made lines, and what it redacts."""

import tempfile
import time
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path

import pyarrow
from detect_secrets.core.scan import scan_file
from detect_secrets.settings import default_settings

from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.detectors import DETECTORS, Detector
from pipeline.stages.normalize.scrub.scrub import Scrubber
from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.slices import sample
from tests.support.labeled.labeled_forms import secret_forms
from tests.support.labeled.labeled_lookalikes import lookalikes
from tests.support.labeled.labeled_passwords import passwords
from tests.support.labeled.labeled_secrets import LabeledLine, divided_tokens, tokens
from tests.support.planted_secrets import lines_by_plugin

NUM_BYTES = 1_000_000
NUM_TURNS = 3
REACH, REACH_RATIO, REACH_REDACTIONS = 25.0, 100.0, 0.2
HEADERS = (".h", ".hpp", ".cuh", ".hxx", ".inl", ".inc", ".hh")
SEED = 11


def secrets() -> list[Figure]:
    """MB/s of one core over real files and a planted secret for every plugin, and recall and precision on the labeled set.

    The tool reads the files once, we in each turn.
    """
    planted = [line for _, lines in sorted(lines_by_plugin().items()) for line in lines]
    chosen = [*sample("quick", NUM_BYTES), "\n".join(planted)]
    megabytes = sum(len(text.encode()) for text in chosen) / 1e6
    speed = megabytes / min(_seconds(chosen) for _ in range(NUM_TURNS))
    tool_speed = megabytes / _seconds_of_the_tool(chosen)
    ratio = round(speed / tool_speed, 1)
    peer = "detect-secrets scan_file, MB/s, same files"
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
        _recall("tokens", tokens(SEED), 0.99),
        _recall("divided", divided_tokens(SEED), 0.99),
        _recall("passwords", passwords(SEED), 0.9),
        _recall("forms", secret_forms(SEED), 0.9),
        _untouched(lookalikes(SEED), 0.95),
        _redactions(),
    ]


def _recall(name: str, lines: Iterable[LabeledLine], reach: float) -> Figure:
    """Return the share of lines that lose all their secrets, beside the share of which the tool reports anything."""
    labeled = list(lines)
    texts = _scrubbed(labeled)
    gone = sum(all(secret not in text for secret in line.secrets) for line, text in zip(labeled, texts, strict=True))
    return _share(name, gone, len(labeled), "labeled lines", reach, _num_found_by_the_tool(labeled))


def _untouched(lines: Iterable[LabeledLine], reach: float) -> Figure:
    labeled = list(lines)
    kept = sum(text == line.text for line, text in zip(labeled, _scrubbed(labeled), strict=True))
    left = len(labeled) - _num_found_by_the_tool(labeled)
    return _share("lookalikes", kept, len(labeled), "look-alikes untouched", reach, left)


def _redactions() -> Figure:
    """Return how much is redacted as a secret in the headers of installed packages, where none is: all of it is false."""
    count, size = 0, 0
    for path in sorted(Path(pyarrow.__file__).parents[1].rglob("*")):
        if path.suffix in HEADERS and path.is_file() and not path.is_symlink():
            text = path.read_text(encoding="utf-8", errors="replace")
            count += sum(1 for detector in _detectors() for _ in detector.finder()(text))
            size += len(text.encode())
    number = round(count / (size / 1e6), 3)
    unit = f"redactions a MB of {size / 1e6:.0f} MB of installed headers"
    return Figure("secrets/redactions", number, unit, f"<= {REACH_REDACTIONS}", number <= REACH_REDACTIONS)


def _share(name: str, count: int, total: int, unit: str, reach: float, tool: int) -> Figure:
    peer = "detect-secrets scan_file"
    holds = count / total >= reach
    return Figure(
        f"secrets/{name}",
        round(count / total, 4),
        f"of {total} {unit}",
        f">= {reach}",
        holds,
        peer,
        round(tool / total, 3),
    )


def _scrubbed(labeled: Iterable[LabeledLine]) -> list[str]:
    scrubber = Scrubber(ScrubParams())
    return [scrubber.scrub("a.cpp", line.text).text for line in labeled]


def _num_found_by_the_tool(labeled: Iterable[LabeledLine]) -> int:
    """Count the lines of which the tool reports anything, in one file with lines between that it has no finding on."""
    text, ends = "", []
    for line in labeled:
        text += line.text + "\n\n\n"
        ends.append(text.count("\n"))
    with tempfile.TemporaryDirectory() as folder, default_settings():
        path = Path(folder) / "a.cpp"
        path.write_text(text, encoding="utf-8")
        return len({bisect_left(ends, secret.line_number) for secret in scan_file(str(path))})


def _seconds(chosen: list[str]) -> float:
    started = time.process_time()
    for text in chosen:
        for detector in _detectors():
            list(detector.finder()(text))
    return time.process_time() - started


def _detectors() -> list[Detector]:
    return [detector for detector in DETECTORS if detector.placeholder == "secret"]


def _seconds_of_the_tool(chosen: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder, default_settings():
        paths = [Path(folder) / f"{index}.cpp" for index in range(len(chosen))]
        for path, text in zip(paths, chosen, strict=True):
            path.write_text(text, encoding="utf-8")
        started = time.process_time()
        for path in paths:
            list(scan_file(str(path)))
        return time.process_time() - started
