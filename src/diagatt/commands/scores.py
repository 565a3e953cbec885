"""How good a model is on samples with known responses."""

from __future__ import annotations

from typing import Any

from diagatt.commands.inputs import Inputs

__all__ = ["predictions", "scores"]


def predictions(model: Any, inputs: Inputs) -> Any:
    """Predicted classes or numbers of the samples."""
    return model.predict(inputs.X, **extra(inputs))


def extra(inputs: Inputs) -> dict[str, Any]:
    """Covariates as a keyword, if there are any."""
    return {} if inputs.covariates is None else {"covariates": inputs.covariates}


def scores(model: Any, inputs: Inputs) -> dict[str, float]:
    """Accuracy and deviance of classes; RMSE and R² of numbers."""
    import numpy as np
    from sklearn.metrics import log_loss, r2_score

    from diagatt.metrics import accuracy, rmse

    y = np.asarray(inputs.y)
    if hasattr(model, "predict_proba"):
        probability = model.predict_proba(inputs.X, **extra(inputs))
        unknown = np.setdiff1d(y, model.classes_)
        if len(unknown):
            raise ValueError(f"the model does not know class {unknown[0]!r}.")
        predicted = model.classes_[probability.argmax(axis=1)]
        loss = log_loss(y, probability, labels=model.classes_)
        return {"accuracy": accuracy(y, predicted), "cross-entropy": float(loss)}
    predicted = predictions(model, inputs)
    found = {"RMSE": rmse(y, predicted)}
    return found if len(inputs) < 2 else found | {"R²": float(r2_score(y, predicted))}
