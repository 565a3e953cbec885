import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from diagatt.datasets.keywords import keyword_sentiment

ORIGINAL = Path(__file__).parents[3] / "shared" / "data" / "marion_sentiment" / "word_lists.json"
COUNTS = {"train_a": 5184, "train_b": 10368}
COUNTS |= {"test_a": 2304, "test_b": 2304, "test_c": 1536, "test_d": 1536}
COUNTS |= {"test_e": 144, "test_f": 96}

PATHS = [
    pytest.param(None, id="bundled"),
    pytest.param(
        ORIGINAL,
        id="original",
        marks=pytest.mark.skipif(not ORIGINAL.is_file(), reason="the original lists are not here"),
    ),
]


@pytest.fixture(params=PATHS)
def data(request):
    return keyword_sentiment(request.param)


def test_counts_of_the_paper(data):
    assert (len(data.train), len(data.test)) == (15_552, 7_920)
    splits = Counter([*data.train.split.tolist(), *data.test.split.tolist()])
    assert splits == COUNTS
    for part in (data.train, data.test):
        for name in set(part.split.tolist()):
            assert part.y[part.split == name].mean() == 0.5
    assert set(data.notes) == set(COUNTS)


def test_the_keyword_alone_decides(data):
    meaning = {}
    for part in (data.train, data.test):
        for text, y, (start, stop) in zip(part.texts, part.y, part.spans, strict=True):
            assert meaning.setdefault(text[start:stop], y) == y
    assert len(meaning) == 10


def test_training_and_test_share_no_comment(data):
    assert len(set(data.train.texts)) == 15_552
    assert not set(data.train.texts) & set(data.test.texts)


def test_keywords_and_structure_out_of_distribution(data):
    def keywords(part, names):
        here = np.isin(part.split, names)
        rows = zip(np.array(part.texts)[here], part.spans[here], strict=True)
        return {text[a:b] for text, (a, b) in rows}

    known = keywords(data.train, ["train_a", "train_b"])
    assert len(known) == 6
    assert keywords(data.test, ["test_a", "test_b", "test_e"]) == known
    new = keywords(data.test, ["test_c", "test_d", "test_f"])
    assert len(new) == 4
    assert new.isdisjoint(known)


def test_our_lists_repeat_no_comment_and_nothing_of_the_original():
    ours = keyword_sentiment()
    assert len(set(ours.test.texts)) == 7_920
    decoys = {text.split(".")[0] for text in ours.train.texts}
    assert any(word in decoy for decoy in decoys for word in ("wonderful", "awful"))


def test_a_list_without_keyword_is_refused(tmp_path):
    slot = {"slot": "a", "carries_label": False, "options": ["b"], "signs": [1]}
    document = {"splits": {"x": {"role": "train", "note": "", "slots": [slot]}}}
    path = tmp_path / "lists.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="split 'x' has no slot that carries the label"):
        keyword_sentiment(path)
