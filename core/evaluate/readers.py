"""How each retriever reads documents and queries, as in production but without any store: for measuring its cost."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Protocol

from core.data.dataset import DataSet
from core.evaluate.evaluate import TEXT
from core.media.picture import PictureError, open_picture
from core.models import specs
from core.models.frozen import TEXT_FILES, FrozenTexts, check
from core.models.medlite import CONFIG, HEAD, MedliteEncoder
from core.records import Doc, Query
from core.retrievers import lexical
from core.retrievers.text import TEXTS_AT_ONCE, Late, MinilmMaxp, TextRetriever
from core.store.workspace import Workspace

NONE = "none"


class Reader(Protocol):
    """``libraries`` are the packages that decide the speed. `reads` gives what is read of a document or query, empty
    where there is nothing; `documents` gives the bytes that an index holds of them."""

    libraries: tuple[str, ...]

    def reads(self, item: Doc | Query) -> Hashable: ...

    def documents(self, docs: Sequence[Doc]) -> int: ...

    def queries(self, queries: Sequence[Query]) -> int: ...

    def files(self) -> Sequence[Path]: ...

    def threads(self) -> int | str: ...

    def device(self) -> str: ...


def _text(item: Doc | Query) -> str:
    return item.full_text if isinstance(item, Doc) else item.text.strip()


class Words:
    """BM25: to encode is to split into stems, and for documents to count them; the index are its arrays."""

    libraries = ("bm25s", "PyStemmer", "numpy")

    def reads(self, item: Doc | Query) -> Hashable:
        return _text(item)

    def documents(self, docs: Sequence[Doc]) -> int:
        import bm25s

        index = bm25s.BM25(k1=lexical.K1, b=lexical.B, method=lexical.METHOD)
        index.index(bm25s.tokenize([_text(doc) for doc in docs], **self._settings()), show_progress=False)
        return sum(index.scores[name].nbytes for name in ("data", "indices", "indptr"))

    def queries(self, queries: Sequence[Query]) -> int:
        import bm25s

        return len(bm25s.tokenize([_text(query) for query in queries], return_ids=False, **self._settings()))

    def _settings(self) -> dict:
        import Stemmer

        stemmer = Stemmer.Stemmer(lexical.STEMMER)
        return {"stopwords": lexical.STOP_WORDS, "stemmer": stemmer, "show_progress": False}

    def files(self) -> Sequence[Path]:
        return []

    def threads(self) -> int | str:
        return NONE

    def device(self) -> str:
        return NONE


class Texts:
    """The three text encoders: a vector a text, a passage or a token, as 32-bit floats."""

    libraries = ("torch", "transformers", "numpy")

    def __init__(self, retriever: TextRetriever) -> None:
        self._retriever = retriever

    def reads(self, item: Doc | Query) -> Hashable:
        return _text(item)

    def documents(self, docs: Sequence[Doc]) -> int:
        texts, retriever = [_text(doc) for doc in docs], self._retriever
        if isinstance(retriever, MinilmMaxp):
            check(retriever.tower.requires())
            texts = [passage for text in texts for passage in retriever.passages(text)]
        return self._encode(texts)

    def queries(self, queries: Sequence[Query]) -> int:
        return self._encode([_text(query) for query in queries])

    def _encode(self, texts: Sequence[str]) -> int:
        tower = self._retriever.tower
        if not isinstance(self._retriever, Late):
            return tower.encode_texts(texts)["single"].nbytes
        check(tower.requires())
        blocks = (texts[start : start + TEXTS_AT_ONCE] for start in range(0, len(texts), TEXTS_AT_ONCE))
        return sum(vectors.nbytes for block in blocks for vectors in tower.tower().tokens(block)[0])

    def files(self) -> Sequence[Path]:
        return _text_files(self._retriever.tower)

    def threads(self) -> int | str:
        return _threads()

    def device(self) -> str:
        return self._retriever.tower.tower().device


class Sides:
    """An encoder of pictures and words; the index holds one vector a document, made of both."""

    libraries = ("torch", "timm", "transformers", "numpy", "pillow")

    def __init__(self, encoder: MedliteEncoder, dataset: DataSet) -> None:
        self._encoder, self._dataset = encoder, dataset

    def reads(self, item: Doc | Query) -> Hashable:
        found = (_text(item), tuple((item.collection, reference) for reference in item.images))
        return found if any(found) else ()

    def documents(self, docs: Sequence[Doc]) -> int:
        self._encode(docs)
        return 4 * self._encoder.dimension * len(docs)

    def queries(self, queries: Sequence[Query]) -> int:
        self._encode(queries)
        return len(queries)

    def _encode(self, items: Sequence[Doc | Query]) -> None:
        pictures = []
        for item in items:
            for reference in item.images:
                try:
                    data = self._dataset.collections[item.collection].picture(reference)
                    pictures.append(open_picture(data).image)
                except PictureError:
                    continue  # as in production: it has no vector
        if pictures:
            self._encoder.encode_images(pictures)
        texts = [_text(item) for item in items if _text(item)]
        if texts:
            self._encoder.encode_texts(texts)

    def files(self) -> Sequence[Path]:
        image, text = (self._encoder.towers[side] for side in ("image", "text"))
        return [image.path, *(self._encoder.folder / name for name in (HEAD, CONFIG)), *_text_files(text)]

    def threads(self) -> int | str:
        return _threads()

    def device(self) -> str:
        return self._encoder.towers["text"].tower().device


def _text_files(tower: FrozenTexts) -> list[Path]:
    assert tower.folder is not None, "it was just run"
    return [tower.folder / name for name in TEXT_FILES]


def _threads() -> int:
    import torch

    return torch.get_num_threads()


def reader_of(model: str, dataset: DataSet, workspace: Workspace) -> Reader:
    """How a model of the table reads; KeyError for an unknown name."""
    spec = specs.get(model)
    if spec.name == "bm25":
        return Words()
    if spec.name in TEXT:
        return Texts(TEXT[spec.name](workspace))
    encoder = specs.load(model)
    assert isinstance(encoder, MedliteEncoder), "the only encoder of both sides"
    return Sides(encoder, dataset)
