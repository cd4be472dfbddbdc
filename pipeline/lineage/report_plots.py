"""Plots of the report page, as inline SVG: bytes by step, sources compared, similarities of duplicates.

Colors are variables of the page's style sheet, so that a plot adapts to a light or a dark page. The same report gives the same SVG.
"""

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.lineage.report import Report

FAMILIES = {
    "kept": "kept",
    "license": "license",
    "duplicate": "duplicate",
    "filter": "filter",
}
"""Family of a fate -> the style sheet's variable. Drops for another reason than a license or a duplicate are those of a filter."""

# Matplotlib needs colors; each is a placeholder of a variable, which replaces it in the finished SVG.
_PLACEHOLDERS = {"#010203": "ink", "#010204": "faint", "#010205": "kept", "#010206": "license"} | {
    "#010207": "duplicate",
    "#010208": "filter",
}
_COLORS = {name: placeholder for placeholder, name in _PLACEHOLDERS.items()}
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sluice",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": _COLORS["ink"],
    "axes.labelcolor": _COLORS["ink"],
    "axes.edgecolor": _COLORS["faint"],
    "xtick.color": _COLORS["ink"],
    "ytick.color": _COLORS["ink"],
}


def family(reason: str) -> str:
    """Return the family of a fate: `kept`, `license` (copies of copyleft texts too), `duplicate` or `filter`."""
    if reason == "kept":
        return "kept"
    if reason.startswith("license") or "copyleft" in reason:
        return "license"
    return "duplicate" if reason.endswith("duplicate") else "filter"


def waterfall(report: Report) -> str:
    """Plot the bytes of C and C++ collected, dropped by each rule, and kept."""
    rules = [rule for rule in report.rules if rule["stage"] != "collect"]
    rules.sort(key=lambda rule: (-rule["num_bytes"], rule["reason"]))
    came = sum(source["num_bytes_in"] for source in report.sources)
    labels, starts, lengths, names = ["collected"], [0.0], [came / 1e6], ["faint"]
    left = came / 1e6
    for rule in rules:
        left -= rule["num_bytes"] / 1e6
        labels.append(rule["reason"].replace("_", " "))
        starts.append(left)
        lengths.append(rule["num_bytes"] / 1e6)
        names.append(family(rule["reason"]))
    labels, starts, lengths, names = [*labels, "kept"], [*starts, 0.0], [*lengths, left], [*names, "kept"]
    with mpl.rc_context(_STYLE):
        figure, axes = _canvas(len(labels))
        axes.barh(labels, lengths, left=starts, color=[_COLORS[name] for name in names], height=0.72)
        for place, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            axes.text(start + length, place, f" {_megabytes(length)}", va="center", fontsize=9)
        axes.set_xlim(0, came / 1e6 * 1.12 or 1)
        axes.set_xlabel("MB of C and C++")
        return _svg(figure)


def sources(report: Report) -> str:
    """Plot the bytes of each source by fate, largest source first."""
    rows = sorted(report.sources, key=lambda source: (-source["num_bytes_in"], source["source"]))
    left = [0.0] * len(rows)
    with mpl.rc_context(_STYLE):
        figure, axes = _canvas(len(rows))
        for name in FAMILIES:
            lengths = [bytes_by_family(row)[name] / 1e6 for row in rows]
            axes.barh([row["source"] for row in rows], lengths, left=left, color=_COLORS[name], height=0.72)
            left = [start + length for start, length in zip(left, lengths, strict=True)]
        axes.set_xlabel("MB of C and C++")
        return _svg(figure)


def similarities(report: Report) -> str | None:
    """Plot the similarities of near-duplicates to their keepers, with the thresholds. None without near-duplicates."""
    alike = [
        loser["jaccard"]
        for cluster in report.clusters
        for loser in cluster["losers"]
        if loser["reason"] == "near_duplicate"
    ]
    if not alike:
        return None
    with mpl.rc_context(_STYLE):
        figure, axes = _canvas(8)
        lowest = min(report.limits["min_jaccard_between_sources"], report.limits["min_jaccard_inside_source"])
        axes.hist(alike, bins=[lowest + (1 - lowest) * step / 30 for step in range(31)], color=_COLORS["duplicate"])
        for key, words in (("min_jaccard_between_sources", "between"), ("min_jaccard_inside_source", "inside")):
            axes.axvline(report.limits[key], color=_COLORS["ink"], linewidth=1, linestyle=":")
            axes.text(report.limits[key], axes.get_ylim()[1], f" {words} sources", va="top", fontsize=9)
        axes.invert_yaxis()
        axes.set_xlabel("exact Jaccard similarity with the keeper")
        axes.set_ylabel("files")
        return _svg(figure)


def bytes_by_family(source: Mapping[str, Any]) -> dict[str, int]:
    """Sum up the bytes of a source by fate."""
    found = dict.fromkeys(FAMILIES, 0)
    for drop in source["drops"]:
        if drop["stage"] != "collect":
            found[family(drop["reason"])] += drop["num_bytes"]
    found["kept"] = source["num_bytes_kept"]
    return found


def _canvas(num_rows: int) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8.6, 0.7 + 0.27 * num_rows), layout="constrained")
    axes = figure.add_subplot()
    axes.invert_yaxis()
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure, axes


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"^<svg[^>]*viewBox=\"([^\"]*)\"[^>]*>", r'<svg class="plot" role="img" viewBox="\1">', text, count=1)
    for placeholder, name in _PLACEHOLDERS.items():
        text = text.replace(placeholder, f"var(--{name})")
    return text


def _megabytes(value: float) -> str:
    return f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"


def plots(report: Report) -> Sequence[str | None]:
    """Draw the waterfall, the sources and the similarities."""
    return waterfall(report), sources(report), similarities(report)
