"""Named models. Each preset is one `ModelConfig`, complete, so that two presets can be compared line by line."""

from pipeline.errors import ParamsError
from trainer.config import AttentionConfig, EngramConfig, ExpertsConfig, M2RNNConfig, Mamba3Config, ModelConfig

PRESETS: dict[str, ModelConfig] = {
    # CPU: tests, the demo, the smoke gate. One layer of each kind; states small enough for a plain loop over time.
    "tiny": ModelConfig(
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
}


def preset(name: str) -> ModelConfig:
    """The model of that name. Raises ParamsError naming the presets that exist."""
    if name not in PRESETS:
        raise ParamsError("model preset", f"no preset named {name!r}", f"one of {', '.join(sorted(PRESETS))}")
    return PRESETS[name]
