"""Parameters spread over ranks (FSDP2): each holds a slice of every parameter, of its gradient and of its optimiser state.

Every rank is given the whole batch of a step and takes its rows, so that the order of the data knows no ranks. Initial values
are slices of the full logical tensors, whatever the mesh. Compile a model first, then shard it: a graph that was traced over
gathered parameters holds for any number of ranks.

Sums over ranks are the library's reduce-scatter: the numbers agree with one process but for rounding, and two equal runs on as
many ranks with each other to the bit. `trainer.parallel` is the path whose bits no number of ranks changes.

Shapes: B rows of a batch, T tokens of a row.
"""

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor

from pipeline.errors import TrainingError
from trainer.model.hybrid import HybridModel, TrainingBatch
from trainer.model.initialization import initialize
from trainer.parallel import Ranks


def shard(model: HybridModel, ranks: Ranks, device: str = "cpu") -> HybridModel:
    """Shard each layer, then what is left, over all ranks, in place. The values stay those of the full tensors."""
    mesh: DeviceMesh = init_device_mesh(device.partition(":")[0], (ranks.count,))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    register_fsdp_forward_method(model, "loss")
    return model


def build_sharded(model: HybridModel, ranks: Ranks, seed: int, device: str = "cpu") -> HybridModel:
    """Shard a model whose weights are unset and write its initial values, one full tensor at a time."""
    initialize(shard(model, ranks, device), seed)
    return model


def sharded_backward(model: HybridModel, batch: TrainingBatch, ranks: Ranks) -> Tensor:
    """Leave each rank's slice of the gradients of a whole batch in the model; returns the batch's loss, the same on every rank.

    Raises TrainingError unless the rows can be shared evenly.
    """
    num_rows = len(batch.input_ids_BT)
    if num_rows % ranks.count:
        raise TrainingError(f"{ranks.count} ranks", f"they cannot share {num_rows} rows", "a number that divides it")
    share = num_rows // ranks.count
    rows = slice(ranks.rank * share, (ranks.rank + 1) * share)
    own = TrainingBatch(*(None if tensor is None else tensor[rows] for tensor in batch))
    loss, _ = model.loss(own, batch.loss_mask_BT.sum())
    # The library averages over ranks; the shares of a step's loss add up.
    (loss * ranks.count).backward()  # type: ignore[no-untyped-call]  # torch's own signature
    total = loss.detach().clone()
    if ranks.count > 1:
        torch.distributed.all_reduce(total)
    return total


def full_tensors(module: nn.Module) -> dict[str, Tensor]:
    """The state of a module with every sharded tensor whole, on every rank."""
    return {
        name: tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        for name, tensor in module.state_dict().items()
    }
