"""PRESETS: the named models. Each is one `ModelConfig`, complete, so that two presets can be compared line by line.

A program that registers one is the only process that knows its name; runs and checkpoints hold the whole model.
"""

from dataclasses import dataclass

from pipeline.core.registry import Registry
from trainer.config.model import AttentionConfig, EngramConfig, ExpertsConfig, M2RNNConfig, Mamba3Config, ModelConfig

NAM_MAMBA3 = Mamba3Config(head_size=64, state_size=64, chunk_size=64)
NAM_ENGRAM = EngramConfig(layers=(4, 20), head_size=32, min_table_rows=100_000)
NAM_ATTENTION = AttentionConfig(
    num_query_heads=56, num_key_value_heads=8, head_size=64, rotary_base=500_000.0, engram=NAM_ENGRAM
)


@dataclass(frozen=True)
class ParameterTarget:
    """Parameter counts that a preset's sizes were chosen for, at a size of the vocabulary. None: not known."""

    vocabulary_size: int = 32_768
    num_parameters: float | None = None
    num_active_parameters: float | None = None
    is_published: bool = False


@dataclass(frozen=True)
class Preset:
    """A named model."""

    name: str
    model: ModelConfig
    target: ParameterTarget = ParameterTarget()
    counted: tuple[int, int] | None = None
    """Parameters, all and active, of the model at that size of the vocabulary, so that they are listed without torch."""


PRESETS: Registry[Preset] = Registry(
    "model preset",
    # CPU: tests, the demo, the smoke gate. One layer of each kind; states small enough for a plain loop over time.
    Preset(
        "tiny",
        ModelConfig(
            pattern="AEMR",
            depth=4,
            width=64,
            is_head_tied=True,
            attention=AttentionConfig(
                num_query_heads=4,
                num_key_value_heads=2,
                head_size=16,
                engram=EngramConfig(layers=(0,), head_size=4, min_table_rows=500),
            ),
            experts=ExpertsConfig(num_experts=4, num_selected=2, expert_size=128, shared_size=128),
            mamba3=Mamba3Config(head_size=32, state_size=32, chunk_size=64),
            m2rnn=M2RNNConfig(num_heads=2, key_size=32, value_size=16),
        ),
        ParameterTarget(1024, 0.3e6),
        (291_726, 206_766),
    ),
    # One GPU, minutes.
    Preset(
        "small",
        ModelConfig(
            pattern="AEMEAEMEAEMR",
            depth=12,
            width=768,
            is_head_tied=True,
            attention=AttentionConfig(
                num_query_heads=12,
                num_key_value_heads=4,
                head_size=64,
                engram=EngramConfig(layers=(4,), head_size=16, min_table_rows=20_000),
            ),
            experts=ExpertsConfig(num_experts=8, num_selected=2, expert_size=704, shared_size=1024),
            mamba3=Mamba3Config(head_size=64, state_size=128, chunk_size=64),
            m2rnn=M2RNNConfig(num_heads=12, key_size=64, value_size=16),
            loss_chunk_tokens=2048,
        ),
        ParameterTarget(32_768, 125e6),
        (125_247_700, 71_447_668),
    ),
    # The benchmarks. About 1 B of its weights work on a token.
    Preset(
        "base",
        ModelConfig(
            pattern="AEME",
            depth=24,
            width=2048,
            is_head_tied=True,
            attention=AttentionConfig(
                num_query_heads=32,
                num_key_value_heads=8,
                head_size=64,
                engram=EngramConfig(layers=(4,), head_size=32, min_table_rows=50_000),
            ),
            experts=ExpertsConfig(num_experts=16, num_selected=4, expert_size=2048, shared_size=1536),
            mamba3=Mamba3Config(head_size=64, state_size=128, chunk_size=64),
            loss_chunk_tokens=2048,
        ),
        ParameterTarget(32_768, num_active_parameters=1e9),
        (2_844_379_008, 1_006_799_616),
    ),
    # Published by handle alone: its widths are not, so that they are nam56r's, with experts as wide as its count allows.
    Preset(
        "nam52",
        ModelConfig(
            pattern="AEME",
            depth=52,
            width=3584,
            is_head_tied=False,
            attention=NAM_ATTENTION,
            experts=ExpertsConfig(num_experts=16, num_selected=4, expert_size=640, shared_size=1024, is_gated=False),
            mamba3=NAM_MAMBA3,
            loss_chunk_tokens=2048,
        ),
        ParameterTarget(65_536, 4.1e9, is_published=True),
        (4_086_750_304, 2_552_928_224),
    ),
    # Experts without a gate: with one it would have 22 % more parameters than the published count, and 3 % more active ones.
    Preset(
        "nam56r",
        ModelConfig(
            pattern="AEMEAEMEAEMR",
            depth=52,
            width=3584,
            is_head_tied=False,
            attention=NAM_ATTENTION,
            experts=ExpertsConfig(num_experts=16, num_selected=4, expert_size=896, shared_size=1024, is_gated=False),
            mamba3=NAM_MAMBA3,
            m2rnn=M2RNNConfig(num_heads=56, key_size=64, value_size=16),
            loss_chunk_tokens=2048,
        ),
        ParameterTarget(65_536, 4.73e9, 3.03e9, is_published=True),
        (4_551_771_392, 2_753_708_160),
    ),
)


def preset(name: str) -> ModelConfig:
    """Return the model of that name. Raises ParamsError naming the presets that exist."""
    return PRESETS[name].model
