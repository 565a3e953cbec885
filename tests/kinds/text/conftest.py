import json
import os

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,!?'"


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """A random BERT whose vocabulary is letters, saved in the usual way."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny-bert")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *(f"##{c}" for c in LETTERS), "good"]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    ).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=40,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text())["hidden_size"] == 8
    return str(folder)
