"""AdamW by hand, and against torch's own to the bit."""

import torch

from tests.support.optimized import give_gradients, model_and_optimizer
from trainer.checkpoint.tensor_files import digest_tensors
from trainer.config.model import OptimizerConfig


def test_one_step_is_adamw_by_hand() -> None:
    model, optimizer = model_and_optimizer(OptimizerConfig(weight_decay=0.5, epsilon=1e-8), torch.float32)
    matrix, embedding = model.layers[0].block.query.weight, model.embedding_VD
    matrix_before, embedding_before = matrix.detach().clone(), embedding.detach().clone()
    matrix.grad, embedding.grad = torch.full_like(matrix, -3.0), torch.full_like(embedding, 2.0)

    optimizer.step()

    torch.testing.assert_close(matrix.detach(), matrix_before * (1 - 0.01 * 0.5) + 0.01)
    torch.testing.assert_close(embedding.detach(), embedding_before - 0.01)


def test_without_muon_every_step_is_torchs_adamw_to_the_bit() -> None:
    config = OptimizerConfig(weight_decay=0.1)
    model, optimizer = model_and_optimizer(config, torch.float32)
    peer, _ = model_and_optimizer(config, torch.float32)
    decays = {group["name"]: group for group in optimizer.param_groups}
    by_name = dict(peer.named_parameters())
    groups = [
        {
            "params": [by_name[name] for name in group["param_names"]],
            "lr": group["lr"],
            "weight_decay": group["weight_decay"],
        }
        for group in decays.values()
    ]
    plain = torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-8, foreach=False, fused=False)
    for step in range(2):
        give_gradients(model, step)
        give_gradients(peer, step)
        optimizer.step()
        plain.step()

    assert digest_tensors(model.state_dict()) == digest_tensors(peer.state_dict())
