"""Bands of shares: which drop reasons and languages have a share that their band does not explain."""

import math
from collections.abc import Mapping

from pipeline.contracts.stage_report import StageReport
from pipeline.lexing.languages import LANGUAGES
from pipeline.stages.normalize.params import DropBands

MAX_CHANCE = 0.01
"""Chance, at the end of a band, of as many drops as were found or more; below it the drops are outside of the band."""


def drops_outside(report: StageReport, num_files: int, bands: DropBands) -> dict[str, str]:
    """Return a sentence by drop reason that too many of the files have for its band. A reason without a band has band 0."""
    limits = {reason: _band_of(reason, bands) for reason in sorted(report.dropped)}
    return {
        reason: f"Dropped as {reason}: {report.dropped[reason]} of {num_files} files, its band {_end_of(reason, limit)}."
        for reason, limit in limits.items()
        if binomial_tail(report.dropped[reason], num_files, limit) < MAX_CHANCE
    }


def _band_of(reason: str, bands: DropBands) -> float:
    if reason in DropBands.model_fields:
        return float(getattr(bands, reason))
    from pipeline.stages.normalize.filters.filters import FILTERS  # numpy is loaded only for filters of a program

    return FILTERS[reason].band if reason in FILTERS else 0.0


def _end_of(reason: str, limit: float) -> str:
    field = f", as `normalize.drop_bands.{reason}` of this build says" if reason in DropBands.model_fields else ""
    return f"ends at {limit:g}{field}"


def binomial_tail(num_found: int, num_trials: int, share: float) -> float:
    """Return the chance of at least `num_found` among `num_trials` where each has the chance `share`, 0-1.

    The exact upper tail of the binomial distribution: few files need a large share, many files a small excess.
    """
    if num_found <= num_trials * share:
        return 1.0  # at least about a half: within the band whatever the exact value is
    if share <= 0:
        return 0.0
    log_term = math.lgamma(num_trials + 1) - math.lgamma(num_found + 1) - math.lgamma(num_trials - num_found + 1)
    log_term += num_found * math.log(share) + (num_trials - num_found) * math.log1p(-share)
    term = total = math.exp(log_term)
    for number in range(num_found, num_trials):
        term *= (num_trials - number) / (number + 1) * share / (1 - share)
        total += term
        if term <= total * 1e-17:
            break
    return total


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
