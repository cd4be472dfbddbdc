"""Expected shares: of the files, that each drop reason may have; of a source, that each language may have.

A broken rule, or a source that became something else, first shows as a share that jumps.
"""

from collections.abc import Mapping

from pipeline.contracts.stage_report import StageReport
from pipeline.core.languages import LANGUAGES
from pipeline.normalize.params import DropBands


def drops_outside(report: StageReport, bands: DropBands) -> tuple[str, ...]:
    """Return a sentence for each drop reason whose share of all files is above its band. A reason without a band has band 0."""
    if report.rows_in < bands.min_num_files:
        return ()
    limits = {reason: float(getattr(bands, reason, 0.0)) for reason in sorted(report.dropped)}
    return tuple(
        f"Dropped as {reason}: {report.dropped[reason] / report.rows_in:.4f} of the files, its band ends at {limit:g}."
        for reason, limit in limits.items()
        if report.dropped[reason] > limit * report.rows_in
    )


def language_shares(report: StageReport) -> dict[str, float]:
    """Return the share of each language in the bytes that the rules keep of a source; all zero if nothing is kept."""
    num_bytes = {language: report.measures[f"num_bytes_cleaned_{language}"] for language in LANGUAGES.names}
    return {language: num_bytes[language] / max(1, sum(num_bytes.values())) for language in LANGUAGES.names}


def languages_outside(
    reports: Mapping[str, StageReport], bands: Mapping[str, Mapping[str, tuple[float, float]]]
) -> tuple[str, ...]:
    """Return a sentence for each source and language whose share is outside the band of the source's pin."""
    return tuple(
        f"Source {source}: {language} is {share:.4f} of its bytes, its band is {low:g} to {high:g}."
        for source in sorted(reports)
        for language, share in language_shares(reports[source]).items()
        for low, high in [bands[source].get(language, (0.0, 1.0))]
        if not low <= share <= high
    )
