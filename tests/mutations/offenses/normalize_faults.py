"""Faults of normalize that its gates see by a share: of what is replaced, and of languages."""

from dataclasses import replace
from typing import Any

from tests.mutations import plant
from tests.mutations.bench import Bench


def scrub_statements(bench: Bench) -> None:
    """Replace what programs compute as if it were secret: only the share of it tells."""
    bench.since = "normalize"

    def replaced(scrubbed: Any) -> Any:
        lines = scrubbed.text.split("\n")
        found = [index for index, line in enumerate(lines) if "=" in line]
        for index in found:
            lines[index] = "<redacted-secret-1>"
        number = {"secret": scrubbed.redactions.get("secret", 0) + len(found)}
        return replace(scrubbed, text="\n".join(lines), redactions={**scrubbed.redactions, **number})

    plant.change_result(
        "pipeline.stages.normalize.scrub.scrub:Scrubber.scrub",
        lambda scrubbed: replaced(scrubbed) if plant.is_corpus() else scrubbed,
    )


def expect_another_language(bench: Bench) -> None:
    """Expect a source in another language than its own."""
    bench.since = "normalize"
    bench.pins = tuple(
        pin.model_copy(update={"languages": {"cpp": (0.0, 0.01)}}) if pin.name == "heron" else pin for pin in bench.pins
    )
