"""A language model at work: texts to pieces, pieces to vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from diagatt.text.backends import Backend
from diagatt.text.words import trim_spans


@dataclass(frozen=True)
class Tokens:
    """Pieces of one text.

    Attributes
    ----------
    ids : list of int
        Numbers of the pieces, special ones included.
    kept : array of shape (n_pieces,)
        Positions of the pieces that stand for characters of the text.
    spans : array of shape (n_pieces, 2)
        Those characters.
    n_cut : int
        Pieces beyond the limit.
    """

    ids: list[int]
    kept: np.ndarray
    spans: np.ndarray
    n_cut: int


def tokenize(backend: Backend, texts: list[str], limit: int) -> list[Tokens]:
    """Cut texts into pieces, of which at most `limit` are kept."""
    encoded = backend.tokenizer(
        texts,
        truncation=True,
        max_length=limit,
        return_overflowing_tokens=True,  # the only way to learn what was left out
        return_special_tokens_mask=True,
        return_offsets_mapping=True,
        verbose=False,
    )
    result: list[Tokens] = []
    for number, sample in enumerate(encoded["overflow_to_sample_mapping"]):
        special = np.array(encoded["special_tokens_mask"][number], dtype=bool)
        if sample < len(result):  # the rest of a text that was cut
            cut = result[sample]
            n_cut = cut.n_cut + int((~special).sum())
            result[sample] = Tokens(cut.ids, cut.kept, cut.spans, n_cut)
            continue
        spans = np.array(encoded["offset_mapping"][number]).reshape(-1, 2)
        trimmed = trim_spans(texts[sample], spans)
        kept = np.flatnonzero(~special & (trimmed[:, 0] < trimmed[:, 1]))
        if len(kept) == 0:
            raise ValueError(
                f"text {texts[sample]!r} holds nothing that model {backend.name!r} can read: drop "
                "it; a sample needs at least one word."
            )
        result.append(Tokens(encoded["input_ids"][number], kept, trimmed[kept], 0))
    return result


def resolve_layers(layers: Any, n_layers: int) -> list[int]:
    """Numbers of hidden layers, from 0 (embedding) to `n_layers`.

    Examples
    --------
    >>> resolve_layers((0, -1), 6), resolve_layers("auto", 6), resolve_layers("joined", 6)
    ([0, 6], [4], [0, 4, 5, 6])
    """
    if isinstance(layers, str) and layers == "auto":
        return [2 * n_layers // 3]
    if isinstance(layers, str) and layers == "joined":
        return sorted({0, 2 * n_layers // 3, 5 * n_layers // 6, n_layers})
    numbers = np.atleast_1d(layers)
    if numbers.ndim != 1 or len(numbers) == 0 or numbers.dtype.kind not in "iu":
        raise ValueError(f"layers must be 'auto', 'joined', an integer or several, got {layers!r}.")
    for number in numbers.tolist():
        if not -n_layers - 1 <= number <= n_layers:
            raise ValueError(
                f"layer {number} does not exist: the model has layers 0 (embedding) to {n_layers}."
            )
    return (numbers % (n_layers + 1)).tolist()


@torch.inference_mode()
def hidden_vectors(backend: Backend, batch: list[Tokens], layers: list[int]) -> list[np.ndarray]:
    """Vectors of every text's kept pieces, layers side by side, (n_pieces, d) each."""
    longest = max(len(tokens.ids) for tokens in batch)
    padding = backend.tokenizer.pad_token_id or 0
    ids = torch.full((len(batch), longest), padding)
    mask = torch.zeros(len(batch), longest, dtype=torch.long)
    for i, tokens in enumerate(batch):
        ids[i, : len(tokens.ids)] = torch.tensor(tokens.ids)
        mask[i, : len(tokens.ids)] = 1
    device = backend.model.device
    output = backend.model(
        input_ids=ids.to(device), attention_mask=mask.to(device), output_hidden_states=True
    )
    hidden = [output.hidden_states[layer].float().cpu().numpy() for layer in layers]
    return [
        np.concatenate([layer[i, tokens.kept] for layer in hidden], axis=1)
        for i, tokens in enumerate(batch)
    ]
