"""Proof of the light imports, each in a fresh interpreter: what a module may load, and what it must not.

python -m tests.tools.light_imports
"""

import subprocess
import sys

FORBIDDEN = {
    "assets.definitions": ("torch", "triton", "tree_sitter", "detect_secrets", "tokenizers", "numba", "duckdb"),
    "trainer.config.training_config": ("torch", "dagster", "duckdb"),
    "pipeline.stages.stages": ("torch", "dagster", "duckdb", "tree_sitter", "detect_secrets", "tokenizers"),
    "pipeline.__main__": ("torch", "dagster", "duckdb", "pyarrow", "numpy", "tokenizers", "detect_secrets"),
    "trainer.proof.verify_loader": ("torch", "dagster", "duckdb"),
    "pipeline.store.bundles.import_bundle": ("torch", "dagster", "pyarrow", "numpy", "tokenizers"),
    "trainer.train.loop": (
        "dagster",
        "duckdb",
        "tree_sitter",
        "tokenizers",
        "rich",
        "detect_secrets",
        "numba",
        "license_expression",
    ),
    "pipeline.lineage.origins.which": ("torch", "dagster", "duckdb", "tokenizers", "detect_secrets"),
    "pipeline.stages.collect.stage": ("pyarrow", "numpy", "httpx2", "unearth", "requests"),
    "pipeline.stages.normalize.stage": ("pyarrow", "numpy", "llvmlite", "detect_secrets", "re2"),
    "kernels.mamba3_scan.op, kernels.rms_norm": ("dagster", "pipeline", "trainer", "pyarrow", "pydantic"),
}


def heavy_modules(module: str, forbidden: tuple[str, ...]) -> list[str]:
    """The forbidden modules that importing `module` loads, or several with commas between."""
    code = f"import sys, {module}; print(*[name for name in {forbidden!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def main() -> int:
    """Print what is wrong; exit 1 if anything is."""
    found = {module: heavy for module, names in FORBIDDEN.items() if (heavy := heavy_modules(module, names))}
    for module, heavy in found.items():
        print(f"{module} loads {', '.join(heavy)}", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
