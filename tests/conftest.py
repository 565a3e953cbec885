import os

# scikit-learn's suite checks array-API input only if this is set before scipy is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tests are small; workers beside each other are faster with one thread each."""
    torch.set_num_threads(1)
