"""Places of the repository that tests read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
MADE_CORPUS = ROOT / "pipeline" / "build" / "made_corpus" / "pins.toml"


def golden_id() -> str:
    """Return the id that every build of the made corpus ends in, on any machine."""
    return (ROOT / "tests" / "golden.txt").read_text().strip()
