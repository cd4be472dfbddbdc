"""A plan of memory agrees with torch's allocator on models that a CPU holds, and refuses a device that is too small."""

import pytest

from pipeline.core.errors import TrainingError
from pipeline.core.settings.overrides import setting
from tests.support.made.measured_memory import measured_peak
from trainer.bench.memory_plan import MemoryPlan, plan_memory, require_fit
from trainer.config.training_config import training_recipe


def plan_of(*settings: str, is_on_gpu: bool = True) -> MemoryPlan:
    return plan_memory(training_recipe("tiny", *map(setting, settings)), 1024, 256, is_on_gpu)


@pytest.mark.parametrize(
    ("settings", "num_tokens", "num_entries"),
    [
        (("model.pattern=AEM", "model.depth=3", "batch_rows=2"), 96, 512),
        (("dtype=bfloat16", "activation_checkpointing=true", "micro_batch_rows=1", "batch_rows=4"), 24, 512),
        (("model.pattern=AE", "model.depth=2"), 64, 16_384),
    ],
)
def test_a_plan_is_what_the_allocator_reports_at_most(
    settings: tuple[str, ...], num_tokens: int, num_entries: int
) -> None:
    config = training_recipe("tiny", *map(setting, settings))
    planned = plan_memory(config, num_entries, num_tokens, is_on_gpu=False)
    measured = measured_peak(config, num_entries, num_tokens)

    assert planned.peak == pytest.approx(measured, rel=0.02)
    assert planned.peak > 1.2 * (planned.weights + planned.optimizer_state), "nothing but weights: it would see little"


def test_a_gpu_holds_one_sum_however_many_micro_batches_and_a_layer_that_is_run_again_keeps_little() -> None:
    plain, checkpointed = (plan_of(f"activation_checkpointing={flag}") for flag in ("false", "true"))
    two, eight = (plan_of("batch_rows=8", f"micro_batch_rows={rows}") for rows in (4, 1))

    assert checkpointed.kept_activations < plain.kept_activations / 5
    assert checkpointed.peak < plain.peak
    assert (plain.waiting_sum, plain.host_sums, two.host_sums) == (0, 0, 0)
    assert eight.waiting_sum == two.waiting_sum > 0.9 * plain.weights
    assert eight.host_sums >= 2 * eight.waiting_sum


def test_a_device_that_does_not_hold_a_step_is_refused_with_both_numbers() -> None:
    plan = plan_of()
    require_fit(plan, plan.needed, "a device")

    assert plan.needed > plan.peak
    with pytest.raises(TrainingError, match=r"a device: a step of 1,024 tokens at a time holds .* needs a device of"):
        require_fit(plan, plan.needed - 1, "a device")
