import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def seed():
    import torch

    torch._dynamo.reset()
    torch.manual_seed(0)
