"""Report page: one self-contained HTML file that loads no script, style, font or picture from elsewhere.

All text of the corpus is escaped. The page can be mailed, archived, and opened from disk.
"""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipeline.lineage.report import Report
from pipeline.lineage.report_plots import bytes_by_family, family, plots

TEMPLATE = "report.html"


def render_page(report: Report) -> str:
    """Render the page. The same report gives the same bytes."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"size": _size, "count": _count, "words": _words, "family": family}
    waterfall, sources, similarities = (svg and Markup(svg) for svg in plots(report))
    return environment.get_template(TEMPLATE).render(
        report=report,
        waterfall=waterfall,
        sources_plot=sources,
        similarities=similarities,
        shares={source["source"]: bytes_by_family(source) for source in report.sources},
        num_bytes_in=sum(source["num_bytes_in"] for source in report.sources),
        num_files_in=sum(source["num_files_in"] for source in report.sources),
        num_bytes_kept=sum(source["num_bytes_kept"] for source in report.sources),
        num_files_kept=sum(source["num_files_kept"] for source in report.sources),
    )


def _size(num_bytes: int) -> str:
    if num_bytes >= 100_000:
        return f"{num_bytes / 1e6:,.1f} MB"
    return f"{num_bytes / 1e3:,.1f} kB" if num_bytes >= 1_000 else f"{num_bytes} B"


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _words(name: str) -> str:
    return name.replace("_", " ")
