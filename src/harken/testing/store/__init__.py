"""What every store must do, as a suite that another store can run on itself.

class TestMyStore(StoreContract):
    @pytest.fixture
    def store(self):
        with contextlib.closing(MyStore()) as store:
            yield store

The suite is split by subject; each part can be run by itself in the same way.
"""

from __future__ import annotations

from .arguments import ArgumentContract
from .artifacts import ArtifactContract
from .chains import T0, grow
from .commits import CommitContract
from .feed import FeedContract
from .forgetting import ForgettingContract
from .maintenance import MaintenanceContract
from .sessions import SessionContract
from .transactions import TransactionContract

__all__ = ["T0", "StoreContract", "grow"]


class StoreContract(
    ArtifactContract,
    TransactionContract,
    CommitContract,
    SessionContract,
    FeedContract,
    MaintenanceContract,
    ForgettingContract,
    ArgumentContract,
):
    """Subclass it, and give it a fixture called `store` that yields an empty store."""
