"""Memory plans: how far they are from what torch's allocator reports of small models, and what the largest preset needs."""

from pipeline.core.settings.overrides import setting
from tests.benchmarks.figure import Figure
from tests.support.made.measured_memory import measured_peak
from trainer.bench.memory_plan import plan_memory
from trainer.config.training_config import training_recipe

CASES = (
    (),
    ("activation_checkpointing=true",),
    ("micro_batch_rows=1",),
    ("dtype=bfloat16", "activation_checkpointing=true", "micro_batch_rows=2"),
    ("model.pattern=AE", "model.depth=8"),
    ("model.width=256", "model.depth=8", "micro_batch_rows=1", "batch_rows=2"),
)
VOCABULARY_SIZE, NUM_TOKENS, MAX_PERCENT, DEVICE_GB = 1024, 256, 5.0, 141.0


def memory_plan() -> list[Figure]:
    """Predict and measure a step of each case on the CPU; plan one of `nam56r` with the operations of a GPU."""
    distances = []
    for settings in CASES:
        config = training_recipe("tiny", *map(setting, settings))
        planned = plan_memory(config, VOCABULARY_SIZE, NUM_TOKENS, is_on_gpu=False).peak
        distances.append(100 * abs(planned / measured_peak(config, VOCABULARY_SIZE, NUM_TOKENS) - 1))
    largest = training_recipe("nam56r", setting("dtype=bfloat16"), setting("attention=varlen"))
    needed = plan_memory(largest, 65_536, 4096, is_on_gpu=True).needed / 1e9
    worst = round(max(distances), 2)
    unit = f"% from the allocator's peak, worst of {len(CASES)} small models"
    return [
        Figure("memory-plan", worst, unit, f"<= {MAX_PERCENT:.0f}", worst <= MAX_PERCENT),
        Figure("memory-plan/nam56r", round(needed, 1), "GB, planned", f"<= {DEVICE_GB:.0f}", needed <= DEVICE_GB),
    ]
