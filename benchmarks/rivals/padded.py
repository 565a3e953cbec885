"""Diagonalized attention on a padded tensor: plain PyTorch, as one writes it for a paper."""

import math

import torch
from torch import Tensor, nn


class PaddedDiagAtt(nn.Module):
    """Scores, masked softmax and pooled rows of an (n, p, d) tensor."""

    def __init__(self, d: int, temperature: float = 100.0, scale: float = 1.0) -> None:
        super().__init__()
        self.query = nn.Parameter(scale * torch.randn(d, d))
        self.key = nn.Parameter(scale * torch.randn(d, d))
        self.value = nn.Parameter(torch.zeros(d))
        self.bias = nn.Parameter(torch.zeros(()))
        self.temperature = temperature

    def forward(self, X: Tensor, mask: Tensor | None = None) -> Tensor:
        """Predictions, (n,)."""
        scores = ((X @ self.query) * (X @ self.key)).sum(dim=-1)  # (n, p)
        scores = scores / (self.temperature * math.sqrt(X.shape[-1]))
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        pooled = (torch.softmax(scores, dim=1)[..., None] * X).sum(dim=1)  # (n, d)
        return pooled @ self.value + self.bias


def train_epoch(model, optimizer, X: Tensor, y: Tensor, batch: int, mask: Tensor | None = None):
    """One pass of mini-batch gradient descent on the squared error."""
    for chosen in torch.randperm(len(X)).split(batch):
        part = None if mask is None else mask[chosen]
        loss = 0.5 * (model(X[chosen], part) - y[chosen]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
