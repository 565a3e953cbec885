import os

# scikit-learn's suite checks array-API input only if this is set before scipy is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def threads():
    """Tests are small; workers beside each other are faster with one thread each.

    `make test-portable` asks for several, which add up sums in another order.
    """
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
