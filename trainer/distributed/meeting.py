"""Meeting of hosts: torch's c10d rendezvous, without which ranks that have begun go on to their own end.

Torch asks its meeting place every 0.1 s whether more hosts wait, and stops the ranks where that is lost: their own error says more.
"""

from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    rendezvous_handler_registry,
)
from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import create_backend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler

from pipeline.core.errors import TrainingError

BACKEND = "c10d-meeting"
"""The name by which `--rdzv-backend` of torch finds it."""


class Meeting(RendezvousHandler):
    """A rendezvous of torch that no host waits at once its place is lost, while the ranks of this one run."""

    def __init__(self, parameters: RendezvousParameters) -> None:
        backend, store = create_backend(parameters)
        self._of_torch = create_handler(store, backend, parameters)
        self._place = parameters.endpoint
        self._has_begun, self._is_lost = False, False

    def get_backend(self) -> str:
        """Return the name of the backend."""
        return BACKEND

    @property
    def use_agent_store(self) -> bool:
        """Return whether the ranks meet in the store of torchrun."""
        return self._of_torch.use_agent_store

    def next_rendezvous(self) -> RendezvousInfo:
        """Join the other hosts. Raises TrainingError where the place is lost after the ranks had begun."""
        try:
            found = self._of_torch.next_rendezvous()
        except RendezvousConnectionError:
            if not self._has_begun:
                raise
            lost = "its host was lost after the ranks had begun"
            raise TrainingError(f"meeting place {self._place}", lost, "", _RESUME) from None
        self._has_begun = True
        return found

    def num_nodes_waiting(self) -> int:
        """Return how many hosts wait to join, none where the place is lost."""
        try:
            return 0 if self._is_lost else self._of_torch.num_nodes_waiting()
        except RendezvousConnectionError:
            self._is_lost = True  # asked again, a host that is gone would take `read_timeout` each time
            return 0

    def is_closed(self) -> bool:
        """Return whether nobody may join any more."""
        return self._of_torch.is_closed()

    def set_closed(self) -> None:
        """Refuse whoever joins from now on."""
        self._of_torch.set_closed()

    def get_run_id(self) -> str:
        """Return the name of the meeting."""
        return self._of_torch.get_run_id()

    def shutdown(self) -> bool:
        """End the meeting and return whether its place answered."""
        return self._of_torch.shutdown()


def register_meeting() -> None:
    """Register it as a backend of torchrun; a second time changes nothing."""
    rendezvous_handler_registry.register(BACKEND, Meeting)


_RESUME = "Start all again with --resume latest, on as many hosts as there are."
