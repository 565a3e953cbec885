import matplotlib
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    """No figure outlives its test."""
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
