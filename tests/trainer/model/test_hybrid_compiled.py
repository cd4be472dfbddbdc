"""Operations are opaque to the compiler: blocks that use them compile whole, and give the bits of the eager run."""

import torch

from kernels.chunked_cross_entropy import chunked_cross_entropy
from trainer.model.blocks.engram import Engram
from trainer.model.blocks.experts import Experts
from trainer.model.layers import RMSNorm
from trainer.model.segments import describe_rows


class Blocks(torch.nn.Module):
    """Engram, norm, experts and a loss: lookup, convolution, norms, dispatch, combine and cross-entropy in one graph."""

    def __init__(self, engram: Engram, norm: RMSNorm, experts: Experts) -> None:
        super().__init__()
        self.engram, self.norm, self.experts = engram, norm, experts

    def forward(self, hidden_BTD: torch.Tensor, ids_BT: torch.Tensor, doc_ids_BT: torch.Tensor) -> torch.Tensor:
        rows = describe_rows(ids_BT, doc_ids_BT)
        hidden_BTD = hidden_BTD + self.engram(hidden_BTD, rows)
        output = self.experts(self.norm(hidden_BTD), rows)
        final_MD = (hidden_BTD + output.update_BTD).flatten(0, 1)
        is_trained_M = ~rows.segments.is_padding_BT.flatten()
        loss = chunked_cross_entropy(final_MD, self.experts.router_ED, ids_BT.flatten() % 4, is_trained_M, 5)
        return loss + output.penalty


def test_blocks_compile_without_a_break_and_keep_their_bits(config_of, shaken, doc_ids_from) -> None:
    from torch._dynamo.testing import CompileCounterWithBackend  # takes a second to load

    config = config_of("AE")
    blocks = Engram(config, 0, vocabulary_size=18), RMSNorm(config.width, config.norm_epsilon), Experts(config)
    model = shaken(Blocks(*blocks))
    hidden_BTD = torch.randn(2, 9, 16, generator=torch.Generator().manual_seed(0), requires_grad=True)
    batch = (hidden_BTD, torch.arange(18).view(2, 9), doc_ids_from([[5, 3], [9]], 9))
    leaves = [hidden_BTD, *model.parameters()]

    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    eager, whole = model(*batch), compiled(*batch)

    assert counter.frame_count == 1
    assert torch.equal(eager, whole)
    for left, right in zip(torch.autograd.grad(eager, leaves), torch.autograd.grad(whole, leaves), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-6, atol=1e-6)
