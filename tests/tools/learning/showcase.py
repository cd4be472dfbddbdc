"""Showcase of `make showcase`: the demo's training, resumed for a minute and a half on two cores, and five completions, judged.

The run of the demo is left as it is: a run of its own resumes its checkpoint. A completion is judged by its brackets and by the
share of its bytes, with those of its prompt, in error nodes of tree-sitter.

python -m tests.tools.learning.showcase [--store DIR] [--recipe quick] [--stop-after N]
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from assets.resources import store_root
from assets.trainer_process import run_trainer, trainer_command
from pipeline.core.errors import SluiceError
from pipeline.lexing.languages import LANGUAGES
from pipeline.stages.enrich.params import SyntaxParams
from pipeline.stages.enrich.syntax.parse import parse_text
from pipeline.store.store import Store

MAX_SECONDS, MAX_ERROR_FRACTION, MIN_CLOSED = 90, 0.1, 4
SAMPLED = ("--tokens", "64", "--best-of", "16", "--temperature", "1", "--until-closed")
"""Options of `trainer sample`: the model's own distribution, a completion ends with the brace that closes its function."""
PROMPTS = (
    "#include <vector>\n\nint main() {\n",
    "static int add(int a, int b) {\n",
    "void clear(std::string* text) {\n",
    "bool is_empty(const char* s) {\n",
    "int count(int n) {\n  int i;\n",
)


def main() -> int:
    """Train, sample, and print one line of JSON a completion and one at the end; 1 where the demo has not run."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.learning.showcase")
    parser.add_argument("--store", type=Path, default=store_root())
    parser.add_argument("--recipe", default="quick")
    parser.add_argument("--stop-after", type=int, default=100)
    options = parser.parse_args()
    demo = f"demo-resumed-{options.recipe}"
    begun = Store(options.store).ref(f"runs/{demo}", "latest")
    if begun is None:
        print(
            f"{options.store} has no run {demo}; expected that of `make demo RECIPE={options.recipe}`", file=sys.stderr
        )
        return 1
    try:
        found = resumed(options, begun)
        judged = [judge(prompt, completed(options.store, found["checkpoint_id"], prompt)) for prompt in PROMPTS]
    except SluiceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for each in judged:
        print(json.dumps(each))
    good = sum(each["is_closed"] and each["error_fraction"] < MAX_ERROR_FRACTION for each in judged)
    print(
        json.dumps({key: found[key] for key in ("steps", "final_loss", "seconds")} | {"good": good, "of": len(judged)})
    )
    print(f"{good} of {len(judged)} close their braces with few errors, aim {MIN_CLOSED}", file=sys.stderr)
    return 0


def resumed(options: argparse.Namespace, begun: str) -> dict[str, Any]:
    """Resume a checkpoint under another name, and return the result with the seconds that it took."""
    run, store = f"showcase-{options.recipe}", options.store
    latest = Store(store).ref(f"runs/{run}", "latest")
    arguments = {
        "--corpus": options.recipe,
        "--recipe": "tiny",
        "--resume": latest or begun,
        "--run": run,
        "--stop-after": str(options.stop_after),
        "--save-every": "100",
        "--out": str(store / "runs" / run),
    }
    started = time.monotonic()
    words = [word for pair in arguments.items() for word in pair]
    found = run_trainer(trainer_command("train", store, *words), lambda line: print(line, file=sys.stderr))
    seconds = time.monotonic() - started
    if seconds > MAX_SECONDS:
        print(f"the training took {seconds:.0f} s; expected at most {MAX_SECONDS} on two quiet cores", file=sys.stderr)
    return found | {"seconds": round(seconds)}


def completed(store: Path, checkpoint_id: str, prompt: str) -> str:
    """Return the likeliest completion that closes its braces, of `SAMPLED`, with the prompt."""
    arguments = ("--checkpoint", checkpoint_id, "--prompt", prompt, *SAMPLED)
    found = run_trainer(trainer_command("sample", store, *arguments), lambda _: None)
    return prompt + found["completion"]


def judge(prompt: str, text: str) -> dict[str, Any]:
    """Return a text with whether its braces close, and its share of bytes in error nodes."""
    syntax = parse_text(text.encode(), LANGUAGES["cpp"], SyntaxParams())
    is_closed = text.count("{") == text.count("}")
    fraction = round(syntax.error_fraction, 3)
    return {"prompt": prompt, "text": text, "is_closed": is_closed, "error_fraction": fraction}


if __name__ == "__main__":
    sys.exit(main())
