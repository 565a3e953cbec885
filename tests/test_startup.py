"""What importing an estimator leaves for later: decompositions, pipelines, linear models, plots."""

import subprocess
import sys

LATER = (
    "decomposition",
    "linear_model",
    "model_selection",
    "pipeline",
    "svm",
    "kernel_approximation",
)


def test_an_estimator_is_imported_without_what_few_fits_need():
    code = "import sys; from diagatt import DiagAttClassifier; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "sklearn.base" in loaded  # the list is one of modules
    unwanted = {f"sklearn.{name}" for name in LATER} | {"matplotlib"}
    assert not unwanted & loaded
