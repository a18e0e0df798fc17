import logging
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def seed():
    import torch

    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def nothing_is_refused(caplog):
    """A graph that the package leaves to PyTorch as a whole fails the test, unless that looks at the
    warning and clears it."""
    yield
    records = caplog.get_records("call")
    assert not [r.getMessage() for r in records if r.name == "graphbench" and r.levelno >= logging.WARNING]
