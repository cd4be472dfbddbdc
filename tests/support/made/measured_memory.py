"""Memory of a training step as torch's allocator reports it, on a CPU: a model is built and trained by one step."""

import numpy as np
from torch.profiler import ProfilerActivity, profile

from trainer.config.training_config import TrainingConfig
from trainer.data.batch import Batch, RowOrigins
from trainer.distributed.ranks import Ranks
from trainer.optim.clipping import clip_gradients
from trainer.optim.optimizer import build_optimizer
from trainer.train.build_model import CPU_PLACEMENT, build_model
from trainer.train.step import backward


def drawn_batch(config: TrainingConfig, vocabulary_size: int, num_tokens: int) -> Batch:
    """Return a batch of drawn ids, two documents a row."""
    shape = (config.batch_rows, num_tokens)
    ids = np.random.default_rng(1).integers(vocabulary_size, size=shape)
    documents = np.ones(shape, dtype=np.int32)
    documents[:, num_tokens // 2 :] = 2
    none = np.zeros(0, dtype=np.int64)
    return Batch(0, RowOrigins((), *[none] * 9), ids, ids, np.ones(shape, dtype=np.bool_), documents)


def measured_peak(config: TrainingConfig, vocabulary_size: int, num_tokens: int) -> int:
    """Return the most bytes that were allocated at once, of all that was allocated since before the model was built."""
    batch = drawn_batch(config, vocabulary_size, num_tokens)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        model, _ = build_model(config, vocabulary_size, 1, CPU_PLACEMENT)
        optimizer = build_optimizer(model, config.optimizer)
        backward(model, batch, config.num_micro_batches, Ranks(), "cpu")
        clip_gradients(model.named_parameters(), config.optimizer.max_gradient_norm)
        optimizer.step()
    events = profiler.profiler.kineto_results.events()  # type: ignore[union-attr]
    memory = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    held = peak = 0
    for _, num_bytes in memory:
        held += num_bytes
        peak = max(peak, held)
    return peak
