"""Capture of 52 layers by the compiler: frames, breaks, and new captures after the warm-up. No GPU is needed."""

import torch

from tests.benchmarks.figure import Figure
from trainer.compile.compile_policy import Compilation
from trainer.config.choices import CompileBackend, CompileMode
from trainer.config.model import (
    AttentionConfig,
    BlockKind,
    EngramConfig,
    ExpertsConfig,
    M2RNNConfig,
    Mamba3Config,
    ModelConfig,
)
from trainer.config.presets import preset
from trainer.distributed.ranks import Ranks
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.model.loss import TrainingBatch

MAX_FRAMES = 6
VOCABULARY = 32


def graph() -> list[Figure]:
    """Both modes at 52 layers. `fullgraph` meets three batch sizes, whose axis is dynamic, `budgeted` rows one at a time."""
    figures = []
    for name in ("nam52", "nam56r"):
        frames, breaks, later = captured(name, CompileMode.FULLGRAPH, (2, 3, 5))
        # One row, as in the GPU rows of these models: with a dynamic batch Dynamo takes three times as long for the same breaks.
        its_frames, its_breaks, its_later = captured(name, CompileMode.BUDGETED, (1, 1))
        opaque = {letter: preset(name).layer_kinds.count(BlockKind(letter)) for letter in "MR"}
        wanted = " + ".join(f"{number} {letter}" for letter, number in opaque.items() if number)
        place, num_opaque = f"graph/{name}", sum(opaque.values())
        new = "frames after the warm-up"
        figures += [
            Figure(f"{place}/frames", frames, "compiled frames, 52 layers", f"<= {MAX_FRAMES}", frames <= MAX_FRAMES),
            Figure(f"{place}/breaks", breaks, "breaks", "0", breaks == 0),
            Figure(f"{place}/later", later, f"{new}, two other batch sizes", "0", later == 0),
            Figure(
                f"{place}/budgeted-breaks", its_breaks, "breaks", f"{num_opaque}: {wanted}", its_breaks == num_opaque
            ),
            Figure(f"{place}/budgeted-frames", its_frames, "compiled frames, 52 layers", "reported", True),
            Figure(f"{place}/budgeted-later", its_later, f"{new}, the same batch size", "0", its_later == 0),
        ]
    return figures


def captured(name: str, mode: CompileMode, batches: tuple[int, ...]) -> tuple[int, int, int]:
    """Frames of the first step, breaks, and frames of the later steps, of which each has its number of rows."""
    torch._dynamo.reset()
    with torch._dynamo.config.patch(error_on_recompile=False):
        compilation = Compilation(narrow_model(name), mode, CompileBackend.EAGER)
        found: list[int] = []
        for step, num_rows in enumerate(batches, 1):
            with compilation.guarded(step):
                compilation.model.loss(batch_of(num_rows, 16))[0].backward()
            compilation.end_step(step, [], Ranks())
            found.append(len(compilation.watch.frames))
    return found[0], compilation.watch.num_breaks, found[-1] - found[0]


def narrow_model(name: str, depth: int | None = None) -> HybridModel:
    """A preset's pattern and Engram layers, few channels wide."""
    named = preset(name)
    depth = depth or named.depth
    layers = tuple(layer for layer in named.attention.engram.layers if layer < depth)
    config = ModelConfig(
        pattern=named.pattern,
        depth=depth,
        width=16,
        attention=AttentionConfig(
            num_query_heads=2,
            num_key_value_heads=1,
            head_size=8,
            engram=EngramConfig(layers=layers, head_size=2, num_heads=2, min_table_rows=20),
        ),
        experts=ExpertsConfig(num_experts=4, num_selected=2, expert_size=8, shared_size=8, is_gated=False),
        mamba3=Mamba3Config(head_size=8, state_size=8, chunk_size=8),
        m2rnn=M2RNNConfig(num_heads=1, key_size=8, value_size=4),
    )
    model = HybridModel(config, VOCABULARY)
    initialize(model, 0)
    return model


def batch_of(num_rows: int, length: int) -> TrainingBatch:
    """Rows of two documents."""
    ids_BT = torch.randint(0, VOCABULARY, (num_rows, length), generator=torch.Generator().manual_seed(num_rows))
    doc_ids_BT = torch.ones(num_rows, length, dtype=torch.int64)
    doc_ids_BT[:, length // 2 :] = 2
    return TrainingBatch(ids_BT, ids_BT, torch.ones(num_rows, length), doc_ids_BT)
