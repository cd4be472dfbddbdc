"""Places of the repository that tests read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
MADE_CORPUS = ROOT / "pipeline" / "build" / "made_corpus" / "pins.toml"
