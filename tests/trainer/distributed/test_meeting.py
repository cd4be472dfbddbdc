"""Meeting of hosts: ranks that have begun need it no more."""

import datetime

import pytest
from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError

from pipeline.core.errors import TrainingError
from trainer.distributed.meeting import BACKEND, Meeting


def place() -> TCPStore:
    """A host of the meeting place, lost where it is deleted."""
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=datetime.timedelta(seconds=5))


def met_at(host: TCPStore) -> Meeting:
    endpoint = f"127.0.0.1:{host.port}"
    return Meeting(RendezvousParameters(BACKEND, endpoint, "test", 1, 1, "127.0.0.1", is_host=0, read_timeout=5))


def test_a_host_that_is_lost_after_the_ranks_have_begun_leaves_them_running_and_is_named_where_they_start_again() -> (
    None
):
    host = place()
    meeting = met_at(host)
    begun = meeting.next_rendezvous()
    meeting._of_torch._state_holder._cache_duration = 0  # type: ignore[attr-defined]  # else torch asks once a second
    waiting = meeting.num_nodes_waiting()
    del begun, host

    assert (waiting, meeting.num_nodes_waiting(), meeting.num_nodes_waiting()) == (0, 0, 0)
    with pytest.raises(TrainingError, match=r"its host was lost after the ranks had begun\. Start all again"):
        meeting.next_rendezvous()
    assert not meeting.shutdown()


def test_a_host_that_is_lost_before_has_not_answered() -> None:
    host = place()
    meeting = met_at(host)
    del host

    with pytest.raises(RendezvousConnectionError):
        meeting.next_rendezvous()
    assert not meeting.shutdown()
