"""Building a model: compiled or not, its values are those of its seed; one process cannot shard it."""

import pytest

from pipeline.core.errors import TrainingError
from trainer.checkpoint.tensor_files import digest_tensors
from trainer.config.choices import CompileBackend, CompileMode
from trainer.config.training_config import training_recipe
from trainer.train.build_model import CPU_PLACEMENT, DevicePlacement, build_model

TINY = training_recipe("tiny")


def test_a_model_has_the_values_of_its_seed_and_no_compilation_unless_it_is_configured() -> None:
    model, compilation = build_model(TINY, 64, 1, CPU_PLACEMENT)
    other, _ = build_model(TINY, 64, 2, CPU_PLACEMENT)
    compiled = TINY.model_copy(update={"compile": CompileMode.FULLGRAPH, "compile_backend": CompileBackend.EAGER})
    same, its_compilation = build_model(compiled, 64, 1, CPU_PLACEMENT)

    assert compilation is None
    assert its_compilation is not None
    assert digest_tensors(model.state_dict()) == digest_tensors(same.state_dict())
    assert digest_tensors(model.state_dict()) != digest_tensors(other.state_dict())


def test_one_process_cannot_shard() -> None:
    with pytest.raises(TrainingError):
        build_model(TINY, 64, 1, DevicePlacement(is_sharded=True))
