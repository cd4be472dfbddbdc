"""Pictures small enough for the UI to show them without a click: Markdown of less than 1,000 characters."""

import base64
from collections.abc import Sequence
from typing import Any

import dagster as dg

_MAX_POINTS = 40


def sparkline(values: Sequence[float], width: int = 240, height: int = 48) -> dg.MetadataValue[Any]:
    """A small line plot with its first and last value in words. At most 40 points are drawn, the last one always."""
    step = max(1, -(-len(values) // _MAX_POINTS))
    points = [*values[: len(values) - 1 : step], values[-1]]
    low, high = min(points), max(points)
    scale = (height - 4) / ((high - low) or 1.0)
    across = width / max(1, len(points) - 1)
    path = " ".join(
        f"{index * across:.0f},{height - 2 - (value - low) * scale:.0f}" for index, value in enumerate(points)
    )
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
        f'<polyline fill="none" stroke="#36c" points="{path}"/></svg>'
    )
    encoded = base64.b64encode(picture.encode()).decode()
    words = f"{values[0]:.4f} to {values[-1]:.4f} in {len(values):,} steps"
    return dg.MetadataValue.md(f"![{words}](data:image/svg+xml;base64,{encoded})\n\n{words}")
