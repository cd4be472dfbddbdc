"""Plots small enough for the UI to show without a click: Markdown of less than 1,000 characters."""

import base64
from collections.abc import Sequence
from typing import Any

import dagster as dg

_MAX_POINTS = 40
_WIDTH, _HEIGHT = 240, 48


def sparkline(values: Sequence[float], form: str = "{:.4f}") -> dg.MetadataValue[Any]:
    """Draw a small line plot, captioned with its first and last value. At most 40 points are drawn, always with the last one."""
    step = max(1, -(-len(values) // _MAX_POINTS))
    points = [*values[: len(values) - 1 : step], values[-1]]
    low, high = min(points), max(points)
    scale = (_HEIGHT - 4) / ((high - low) or 1.0)
    across = _WIDTH / max(1, len(points) - 1)
    path = " ".join(
        f"{index * across:.0f},{_HEIGHT - 2 - (value - low) * scale:.0f}" for index, value in enumerate(points)
    )
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}">'
        f'<polyline fill="none" stroke="#36c" points="{path}"/></svg>'
    )
    encoded = base64.b64encode(picture.encode()).decode()
    caption = f"{form.format(values[0])} to {form.format(values[-1])} in {len(values):,} steps"
    return dg.MetadataValue.md(f"![{caption}](data:image/svg+xml;base64,{encoded})\n\n{caption}")
