"""Figures of planted faults: how many are killed, as the table of docs/mutations.md says. One that was not run is not."""

from tests.benchmarks.figure import Figure
from tests.mutations.__main__ import mutations
from tests.support.mutations_page import counted
from tests.support.paths import ROOT


def planted_faults() -> list[Figure]:
    """Read the page: `make mutations` plants, and writes it."""
    kinds = {each.name: each.kind for each in mutations()}
    found = counted(ROOT / "docs" / "mutations.md", kinds)
    share = round(100 * found.num_killed / found.num_faults, 2)
    unit = f"% of {found.num_faults} planted faults killed"
    controls = f"of {found.num_controls} equivalent mutants, survived"
    return [
        Figure("mutations", share, unit, "100 %", found.num_killed == found.num_faults),
        Figure("mutations/survived", found.num_survived, "faults", "0", not found.num_survived),
        Figure("mutations/not-run", found.num_not_run, "faults without a row", "0", not found.num_not_run),
        Figure("mutations/controls", found.num_green, controls, "all", found.num_green == found.num_controls),
    ]
