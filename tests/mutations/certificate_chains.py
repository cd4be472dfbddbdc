"""CHAINS: mutations of what the chains of a certificate are made of, each a part that is left out."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from tests.mutations.plant import wrap


def _link_without(part: str) -> Callable[[], None]:
    """Return a change of the chains: each link leaves out a part of what it is made of."""

    def plant() -> None:
        import hashlib
        import struct

        def link(self: Any, step: int, state: bytes) -> None:
            def kept(name: str, content: bytes) -> bytes:
                return b"" if name == part else content

            loss = kept("loss", struct.pack("<f", self.losses[step - 1]))
            flag = kept("skipped", b"\1" if self.skipped[step - 1] else b"\0")
            data, numbers = kept("data", self.data), kept("numbers", self.numbers)
            self.data = hashlib.sha256(data + kept("batch", self.batches[step - 1])).digest()
            self.numbers = hashlib.sha256(numbers + loss + flag + kept("state", state)).digest()

        wrap("trainer.checkpoint.certificate:History._link", lambda _: link)

    return plant


def _batch_without(name: str) -> Callable[[], None]:
    """Return a change of a batch's digest: it is of zeros in place of one array."""

    def plant() -> None:
        from dataclasses import replace

        def make(digest: Any) -> Any:
            def digested(batch: Any) -> bytes:
                value = getattr(batch, name)
                other = 0 if isinstance(value, int) else value * 0
                return bytes(digest(replace(batch, **{name: other})))

            return digested

        wrap("trainer.checkpoint.certificate:digest_batch", make)

    return plant


def _tensor_digest(change: Callable[[str, Any], tuple[str, Any]]) -> Callable[[], None]:
    def plant() -> None:
        wrap(
            "trainer.checkpoint.certificate:digest_tensor",
            lambda digest: lambda name, tensor: digest(*change(name, tensor)),
        )

    return plant


def _batch_fields() -> tuple[str, ...]:
    from trainer.data.batch import Batch

    return tuple(each.name for each in fields(Batch) if each.name.endswith("_BT") and "None" not in str(each.type))


CHAINS: dict[str, tuple[str, Callable[[], None]]] = {
    **{
        f"link-{part}": (f"the links of the chains leave out {part}", _link_without(part))
        for part in ("data", "batch", "numbers", "loss", "skipped", "state")
    },
    **{
        f"batch-{name}": (f"the digest of a batch leaves out {name}", _batch_without(name))
        for name in ("position", *_batch_fields())
    },
    "tensor-name": ("the digest of a tensor leaves out its name", _tensor_digest(lambda name, tensor: ("", tensor))),
    "tensor-values": (
        "the digest of a tensor leaves out its values",
        _tensor_digest(lambda name, tensor: (name, tensor * 0)),
    ),
    "tensor-shape": (
        "the digest of a tensor leaves out its shape",
        _tensor_digest(lambda name, tensor: (name, tensor.reshape(-1))),
    ),
    "no-states": (
        "no state is recorded",
        lambda: wrap(
            "trainer.checkpoint.certificate:History.extend",
            lambda extend: lambda self, batch, loss, skipped, tensors: extend(self, batch, loss, skipped, None),
        ),
    ),
}
