"""Fitted models, their files, and what a hostile one says when it is loaded."""

import hashlib
import json
import warnings

import numpy as np
import pytest
from safetensors.numpy import save as save_tensors

from diagatt import (
    BlendedClassifier,
    BlendedRegressor,
    DiagAttClassifier,
    DiagAttRegressor,
    ModelFileError,
    PooledRegressor,
    RaggedRows,
)
from diagatt.kinds.image.estimator import ImageClassifier
from diagatt.solvers import Gradient


def draw(n=24, d=3):
    rng = np.random.default_rng(0)
    X = RaggedRows.from_samples([rng.normal(size=(rng.integers(3, 5), d)) for _ in range(n)])
    return X, np.array([sample[0].sum() for sample in X])


X, Y = draw()
LABELS = np.array(["no", "perhaps", "yes"])[np.searchsorted(np.quantile(Y, [0.3, 0.6]), Y)]


def fitted_models():
    quick = Gradient(
        max_epochs=2, optimizer="adam", n_restarts=2, parameterization="factored", rank=1
    )
    regressor = DiagAttRegressor(2, solver=quick, random_state=0)
    members = [("all", DiagAttRegressor(solver="likelihood"), None)]
    members += [("some", DiagAttRegressor(solver="uniform"), [0, 2])]
    images = np.random.default_rng(0).random((12, 4, 4))
    classes = [("one", DiagAttClassifier(solver="likelihood"), None)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "regressor": regressor.fit(X, Y, covariates=Y[:, None] ** 2),
            "classifier": DiagAttClassifier(solver="likelihood").fit(X, LABELS),
            "pooled": PooledRegressor("mean+max").fit(X, Y),
            "blend": BlendedRegressor(members, n_blocks=3).fit(X, Y),
            "blended classes": BlendedClassifier(classes).fit(X, LABELS),
            "image": ImageClassifier(2, estimator=DiagAttClassifier(solver="uniform")).fit(
                images, np.arange(12) % 2
            ),
        }


MODELS_HERE = fitted_models()
PARTS = {name: model.to_document() for name, model in MODELS_HERE.items()}
FUZZED = ("regressor", "classifier", "pooled", "blend")


def parts(name):
    """Tensors and document of a saved model, as JSON gives them back, to be spoiled."""
    tensors, document = PARTS[name]
    return dict(tensors), json.loads(json.dumps(document))


def sealed(tensors, text):
    """The bytes of a file with this text as its document, and a checksum that is right."""
    arrays = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    blank = save_tensors(arrays, {"diagatt": text, "sha256": "0" * 64})
    digest = hashlib.sha256(blank).hexdigest()
    return blank.replace(b'"sha256":"' + b"0" * 64, b'"sha256":"' + digest.encode(), 1)


def with_header(header):
    """The bytes of a file that is nothing but this header."""
    return len(header).to_bytes(8, "little") + header


def load(name, path, content):
    path.write_bytes(content)
    return type(MODELS_HERE[name]).load(path)


def said(name, path, content):
    """The one sentence with which the file is refused."""
    with pytest.raises(ModelFileError) as error:
        load(name, path, content)
    message = str(error.value)
    assert str(path) in message
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 600
    return message
