"""Report page: one self-contained HTML file that loads no script, style, font or picture from elsewhere.

All text of the corpus is escaped. The page can be mailed, archived, and opened from disk. Its plots are inline SVG, whose colors
are variables of the page's style sheet: a plot adapts to a light or a dark page.
"""

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.core.durable import replace
from pipeline.lineage.ref_moves import moves_table, page_environment
from pipeline.lineage.report import Report, report_corpus
from pipeline.lineage.stored_build import report_path
from pipeline.stages.stages import STAGES, collecting_steps
from pipeline.store.store import Store

TEMPLATE = "report.html"
FAMILIES = ("kept", "license", "duplicate", "filter")
"""Families of outcomes, each a color of the style sheet. Drops that are for neither license nor duplicate are those of a filter."""

# Matplotlib needs colors; each is a placeholder of a variable of the style sheet, which replaces it in the finished SVG.
_COLORS = {name: f"#0102{number:02x}" for number, name in enumerate(("ink", "faint", *FAMILIES), start=3)}
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


def render_page(report: Report) -> str:
    """Render the page. The same report gives the same bytes."""
    environment = page_environment()
    environment.filters |= {
        "size": _size,
        "count": _count,
        "signed": _signed,
        "words": _words,
        "family": family,
        "moment": _moment,
        "zip": zip,
    }
    names = ("num_bytes_in", "num_files_in", "num_bytes_kept", "num_files_kept")
    return environment.get_template(TEMPLATE).render(
        report=report,
        collecting=collecting_steps(),
        outcome_families={row["outcome"]: family(row["outcome"]) for row in report.files},
        num_files_listed=sum(len(row["paths"]) for row in report.files),
        num_files_found=report.stages[0]["rows_in"] - sum(step["num_evidence_files"] for step in report.stages),
        moves=Markup(moves_table(report.corpus, report.refs)),
        waterfall=Markup(plot_waterfall(report)),
        sources_plot=Markup(plot_sources(report)),
        similarities=Markup(plot_similarities(report)),
        shares={source["source"]: bytes_by_family(source) for source in report.sources},
        **{name: sum(source[name] for source in report.sources) for name in names},
    )


def write_report(store: Store, corpus: str, of: str | None = None) -> Path:
    """Write the report page of a build into the store, and return its path. Raises MissingError for a build without documents."""
    out = report_path(store, corpus, of)
    out.parent.mkdir(parents=True, exist_ok=True)
    replace(out, render_page(report_corpus(store, corpus, of=of)).encode())
    return out


def family(reason: str) -> str:
    """Return the family of an outcome: `kept`, `license` (copies of copyleft texts too), `duplicate` or `filter`."""
    if reason == "kept":
        return "kept"
    if reason.startswith("license") or "copyleft" in reason:
        return "license"
    return "duplicate" if any(reason in stage.reasons_of_copies for stage in STAGES) else "filter"


def plot_waterfall(report: Report) -> str:
    """Plot the bytes of source code collected, dropped by each rule, and kept."""
    rules = [rule for rule in report.rules if rule["stage"] not in collecting_steps()]
    rules.sort(key=lambda rule: (-rule["num_bytes"], rule["reason"]))
    num_bytes = sum(source["num_bytes_in"] for source in report.sources)
    unit, scale = _unit_of(num_bytes)
    came = left = num_bytes / scale
    bars = [("collected", 0.0, came, "faint")]
    for rule in rules:
        length = rule["num_bytes"] / scale
        left -= length
        bars.append((rule["reason"].replace("_", " "), left, length, family(rule["reason"])))
    labels, starts, lengths, names = zip(*bars, ("kept", 0.0, left, "kept"), strict=True)
    with mpl.rc_context(_STYLE):
        figure, axes = _canvas(len(labels))
        axes.barh(labels, lengths, left=starts, color=[_COLORS[name] for name in names], height=0.72)
        for place, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            axes.text(start + length, place, f" {length:.{1 if length >= 0.95 else 2}f}", va="center", fontsize=9)
        axes.set_xlim(0, came * 1.12 or 1)
        axes.set_xlabel(f"{unit} of source code")
        return _svg(figure)


def _unit_of(num_bytes: int) -> tuple[str, float]:
    return ("MB", 1e6) if num_bytes >= 1e6 else ("kB", 1e3)


def plot_sources(report: Report) -> str:
    """Plot the bytes of each source by outcome, largest source first."""
    rows = sorted(report.sources, key=lambda source: (-source["num_bytes_in"], source["source"]))
    left = [0.0] * len(rows)
    unit, scale = _unit_of(max((source["num_bytes_in"] for source in rows), default=0))
    with mpl.rc_context(_STYLE):
        figure, axes = _canvas(len(rows))
        for name in FAMILIES:
            lengths = [bytes_by_family(row)[name] / scale for row in rows]
            axes.barh([row["source"] for row in rows], lengths, left=left, color=_COLORS[name], height=0.72)
            left = [start + length for start, length in zip(left, lengths, strict=True)]
        axes.set_xlabel(f"{unit} of source code")
        return _svg(figure)


def plot_similarities(report: Report) -> str:
    """Plot the similarities of near-duplicates to their keepers, with the thresholds. Empty without near-duplicates."""
    losers = [loser for cluster in report.clusters for loser in cluster["losers"]]
    alike = [loser["jaccard"] for loser in losers if loser["reason"] == "near_duplicate"]
    if not alike:
        return ""
    with mpl.rc_context(_STYLE):
        figure, axes = _canvas(8)
        lowest = min(report.limits["min_jaccard_between_sources"], report.limits["min_jaccard_inside_source"])
        axes.hist(alike, bins=[lowest + (1 - lowest) * step / 30 for step in range(31)], color=_COLORS["duplicate"])
        for key, place in (("min_jaccard_between_sources", "between"), ("min_jaccard_inside_source", "inside")):
            axes.axvline(report.limits[key], color=_COLORS["ink"], linewidth=1, linestyle=":")
            axes.text(report.limits[key], axes.get_ylim()[1], f" {place} sources", va="top", fontsize=9)
        axes.invert_yaxis()
        axes.set_xlabel("exact Jaccard similarity with the keeper")
        axes.set_ylabel("files")
        return _svg(figure)


def bytes_by_family(source: Mapping[str, Any]) -> dict[str, int]:
    """Sum up the bytes of a source by outcome."""
    found = dict.fromkeys(FAMILIES, 0)
    for drop in source["drops"]:
        if drop["stage"] not in collecting_steps():
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
    for name, placeholder in _COLORS.items():
        text = text.replace(placeholder, f"var(--{name})")
    return text


def _size(num_bytes: int) -> str:
    if num_bytes >= 100_000:
        return f"{num_bytes / 1e6:,.1f} MB"
    return f"{num_bytes / 1e3:,.1f} kB" if num_bytes >= 1_000 else f"{num_bytes} B"


def _signed(number: int | None) -> str:
    """Return a difference; a dash where a build ended before there is such a number."""
    return "—" if number is None else f"{number:+,d}"


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _moment(when: str) -> str:
    return f"{when[:10]} {when[11:16]}"


def _words(name: str) -> str:
    return name.replace("_", " ")
