"""Choices of a training that a command line offers too, as enums. Loads neither torch nor pydantic."""

from enum import StrEnum


class CompileMode(StrEnum):
    """Mode of torch.compile: what is compiled, and whether graph breaks are allowed; see `trainer.compile.compile_policy`."""

    OFF = "off"
    FULLGRAPH = "fullgraph"
    BUDGETED = "budgeted"


class CompileBackend(StrEnum):
    """Backend of torch.compile. The first two run the operations of a graph one by one: they prove the capture without a GPU."""

    EAGER = "eager"
    AOT_EAGER = "aot_eager"
    INDUCTOR = "inductor"


class AttentionChoice(StrEnum):
    """Attention backend; `trainer.model.attention_backends` lists what each needs."""

    MATH = "math"
    FLEX = "flex"
    VARLEN = "varlen"


class Precision(StrEnum):
    """The type of matrix products. Parameters, moments, norms, router, scan states and the loss are float32 with either."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


class EpochOrder(StrEnum):
    """Order in which a source's rows are read."""

    PERMUTED = "permuted"
    """A new permutation in every epoch."""
    PUBLISHED = "published"
    """As they are stored in the first two epochs, permuted after that."""
