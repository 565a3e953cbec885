"""Models of the package torchmil, trained as its examples are.

Adam at 1e-3, batches of 16, at most 200 epochs; a fifth of the training samples stops the training
after 20 epochs without a smaller loss, and the best epoch counts.
"""

import copy
from typing import ClassVar

import numpy as np
import torch
from sklearn.model_selection import train_test_split

EPOCHS, PATIENCE, BATCH, RATE = 200, 20, 16, 1e-3


class _Torchmil:
    """A model of torchmil with defaults of its class."""

    needs = ("torchmil", "tensordict", "einops")
    settings: ClassVar = {"epochs": EPOCHS, "patience": PATIENCE, "batch": BATCH, "rate": RATE}

    def __init__(self, task, seed):
        self.task, self.seed = task, seed

    def fit(self, X, y):
        torch.manual_seed(self.seed)
        y = np.asarray(y, dtype=np.float64)
        self.center_, self.scale_ = (0.0, 1.0) if self.task == "binary" else (y.mean(), y.std())
        response = torch.as_tensor((y - self.center_) / self.scale_, dtype=torch.float32)
        strata = y if self.task == "binary" else None
        train, stop = train_test_split(
            np.arange(len(y)), test_size=0.2, stratify=strata, random_state=self.seed
        )
        loss = torch.nn.BCEWithLogitsLoss() if self.task == "binary" else torch.nn.MSELoss()
        self.model_ = self.make((X.n_features,), loss)
        optimizer = torch.optim.Adam(self.model_.parameters(), lr=RATE)
        rng = np.random.default_rng(self.seed)
        best, since, kept = np.inf, 0, None
        for _ in range(EPOCHS):
            self.model_.train()
            for batch in np.array_split(rng.permutation(train), -(-len(train) // BATCH)):
                optimizer.zero_grad()
                self._loss(X[batch], response[batch]).backward()
                optimizer.step()
            self.model_.eval()
            with torch.no_grad():
                now = float(self._loss(X[stop], response[stop]))
            since += 1
            if now < best:
                best, since, kept = now, 0, copy.deepcopy(self.model_.state_dict())
            if since >= PATIENCE:
                break
        self.model_.load_state_dict(kept)
        self.model_.eval()

    def _loss(self, X, response):
        bags, mask = _padded(X)
        _, losses = self.model_.compute_loss(response, bags, mask)
        return sum(losses.values())

    def _answer(self, sample):
        bag = torch.as_tensor(np.array(sample), dtype=torch.float32)[None]
        with torch.no_grad():
            score, rows = self.model_.predict(bag, None, return_inst_pred=True)
        return float(score.squeeze()), int(rows.squeeze(0).reshape(len(sample), -1)[:, 0].argmax())

    def predict(self, X):
        return np.array([self._answer(x)[0] for x in X]) * self.scale_ + self.center_

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-self.predict(X)))
        return np.column_stack([1 - p, p])

    def locate(self, X):
        return [self._answer(x)[1] for x in X]


class ABMIL(_Torchmil):
    """ABMIL of torchmil: attention pooling of rows."""

    name = "torchmil-abmil"
    tasks = ("binary", "regression")

    def make(self, shape, loss):
        from torchmil.models import ABMIL as Model

        return Model(in_shape=shape, criterion=loss)


class DSMIL(_Torchmil):
    """DSMIL of torchmil: the best row and attention around it."""

    name = "torchmil-dsmil"
    tasks = ("binary",)

    def make(self, shape, loss):
        from torchmil.models import DSMIL as Model

        return Model(in_shape=shape, criterion=loss)


def _padded(X):
    bags, mask = X.to_padded()
    return torch.as_tensor(bags, dtype=torch.float32), torch.as_tensor(mask, dtype=torch.float32)
