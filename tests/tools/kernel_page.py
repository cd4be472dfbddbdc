"""Tables of docs/kernels.md: what operations move and multiply at sizes of training, and what ptxas says of their launches."""

from collections.abc import Callable, Sequence
from typing import Any

from kernels.mamba3_scan.launch import LONGEST_CHUNK, LONGEST_WALKED_CHUNK

BYTES_A_SECOND, PRODUCTS_A_SECOND, FLOAT32_A_SECOND = 4.8e12, 989e12, 67e12
"""Of an H200, as its data sheet has them: memory, dense products in bfloat16, and float32 without tensor cores."""
MARK = "<!-- made by `python -m tests.tools.compile_ahead --write docs/kernels.md` -->\n"
Row = dict[str, Any]


def scan_products(num_rows: int, num_tokens: int, num_heads: int, head: int, state: int, _: int) -> float:
    """Multiplications and additions of the Mamba-3 scan: of a token with its chunk's queries, keys and values, and with states."""
    forward = 2 * LONGEST_WALKED_CHUNK * (state + head) + 3 * 2 * head * state
    backward = 3 * 2 * LONGEST_CHUNK * (state + head) + 7 * 2 * head * state
    return num_rows * num_heads * num_tokens * (forward + backward)


PRODUCTS: dict[str, Callable[..., float]] = {
    "chunked_cross_entropy": lambda tokens, width, entries, *_: 3 * 2 * tokens * width * entries,
    "expert_product": lambda tiles, length, _, width_in, width_out: 3 * 2 * tiles * length * width_in * width_out,
    "mamba3_scan": scan_products,
    # h W, once forward and once again; p W^T and h^T p backward.
    "m2rnn": lambda rows, tokens, heads, key, value: 4 * 2 * rows * tokens * heads * key * value**2,
}
"""Multiplications and additions of forward and backward pass, by the sizes of a case; operations without products have none."""
SCALAR_PRODUCTS = ("m2rnn",)
"""Operations whose products are of float32, and on no tensor core."""


def with_tables(page: str, rows: Sequence[Row], compiler: str) -> str:
    """Return the page with its tables made of these rows, which a compiler has found."""
    tables = [*operation_lines(rows), "", f"Compiled by {compiler}:", "", *_launches(rows)]
    return page.partition(MARK)[0] + MARK + "\n" + "\n".join(tables) + "\n"


def operation_lines(rows: Sequence[Row]) -> list[str]:
    """Return the table of what operations move and multiply, which depends on no compiler."""
    lines = [
        "| operation | sizes | MB at the least | MB of the launches | GFLOP of products | floor, ms | set by |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if "operation" in row:
            name, sizes = row["operation"], [int(size) for size in row["case"].split("x")]
            products = PRODUCTS[name](*sizes) if name in PRODUCTS else 0.0
            bound = FLOAT32_A_SECOND if name in SCALAR_PRODUCTS else PRODUCTS_A_SECOND
            by_bytes, by_products = 1e3 * row["least"] / BYTES_A_SECOND, 1e3 * products / bound
            cells = (
                f"`{name}`", row["case"], f"{row['least'] / 1e6:.1f}", f"{row['moved'] / 1e6:.1f}",
                f"{products / 1e9:.1f}" if products else "", f"{max(by_bytes, by_products):.4f}",
                "products" if by_products > by_bytes else "bytes",
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _launches(rows: Sequence[Row]) -> list[str]:
    lines = [
        "| kernel | sizes | warps | stages | registers | spilled bytes | shared bytes |",
        "|---|---|---|---|---|---|---|",
    ]
    names = ("num_warps", "num_stages", "registers", "spilled_bytes", "shared_bytes")
    for row in rows:
        if "kernel" in row:
            name = row["kernel"].removeprefix("kernels.")
            lines.append(f"| `{name}` | {row['case']} | {' | '.join(str(row[each]) for each in names)} |")
    return lines
