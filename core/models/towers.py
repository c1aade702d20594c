"""The two frozen towers of ``medlite``: pictures through EfficientNet-Lite0, words through all-MiniLM-L6-v2.

Both compute in 32-bit floats and never reach for the network. Heavy libraries are imported when a tower is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL import Image
    from torch import Tensor

PICTURE_FITS = ("stretch", "crop", "pad")
"""How a picture becomes a square: *stretch* both sides; *crop* the centre of the shorter side (timm's evaluation
transform); *pad* the shorter side with black."""

PICTURE_SIZE = 224
CROP_SHARE = 0.875
IMAGE_DIMENSION = 1280
TEXT_DIMENSION = 384
BATCH = 32


def square(image: Image.Image, fit: str, size: int = PICTURE_SIZE) -> np.ndarray:
    """An RGB picture as ``uint8 [size, size, 3]``, resampled bicubically (with antialiasing) as ``fit`` says."""
    from PIL import Image

    if image.mode != "RGB":
        raise ValueError(f"A picture of mode {image.mode} was given; open it as RGB.")
    if fit not in PICTURE_FITS:
        raise ValueError(f"Unknown fit {fit!r}; one of {', '.join(PICTURE_FITS)}.")
    if fit == "stretch":
        return np.asarray(image.resize((size, size), Image.Resampling.BICUBIC))
    width, height = image.size
    scale = size / CROP_SHARE / min(width, height) if fit == "crop" else size / max(width, height)
    resized = image.resize(
        (max(1, round(width * scale)), max(1, round(height * scale))),
        Image.Resampling.BICUBIC,
    )
    left, top = (resized.width - size) // 2, (resized.height - size) // 2
    # crop() fills what lies outside the picture with black, which is what padding wants
    return np.asarray(resized.crop((left, top, left + size, top + size)))


class ImageTower:
    """EfficientNet-Lite0 (timm's ``tf_efficientnet_lite0``) without its classifier.

    ``weights`` is a safetensors file with timm's names; ``fit`` one of :data:`PICTURE_FITS`. Pixel values are scaled
    to -1 … 1 (mean 0.5, deviation 0.5), as timm's configuration of these weights says.
    """

    def __init__(self, weights: Path, fit: str, device: str = "cpu") -> None:
        import timm
        import torch
        from safetensors.torch import load_file

        model = timm.create_model("tf_efficientnet_lite0", pretrained=False, num_classes=0)
        tensors = {name: t.float() if t.is_floating_point() else t for name, t in load_file(weights).items()}
        model.load_state_dict(tensors, strict=True)
        # channels_last doubles the speed of the depthwise convolutions on a CPU
        self.model = model.eval().to(device=device, memory_format=torch.channels_last)
        self.fit = fit
        self.device = device

    def features(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Pooled features, ``float32 [n, 1280]``; at most 32 pictures are on the device at once."""
        import torch

        out = np.empty((len(images), IMAGE_DIMENSION), np.float32)
        with torch.inference_mode():
            for start in range(0, len(images), BATCH):
                pixels = np.stack([square(image, self.fit) for image in images[start : start + BATCH]])
                batch = torch.from_numpy(pixels).to(self.device).permute(0, 3, 1, 2).float() / 127.5 - 1
                batch = batch.contiguous(memory_format=torch.channels_last)
                out[start : start + len(pixels)] = self.model(batch).cpu().numpy()
        return out


class TextTower:
    """all-MiniLM-L6-v2: mean of the token vectors under the attention mask, scaled to length 1.

    ``folder`` holds ``config.json``, the tokenizer's files and ``model.safetensors``. Texts longer than
    ``max_tokens`` tokens, [CLS] and [SEP] included, are cut at the end.
    """

    def __init__(self, folder: Path, max_tokens: int = 256, device: str = "cpu") -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging

        level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = AutoModel.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, dtype=torch.float32, add_pooling_layer=False
            )
        finally:
            logging.set_verbosity(level)
            if bars:
                logging.enable_progress_bar()
        # Set once: the tokenizer must not be reconfigured while several threads use it.
        self.tokenizer = tokenizer.backend_tokenizer
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.model = model.eval().to(device)
        self.max_tokens = max_tokens
        self.device = device

    def embed(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Unit vectors ``float32 [n, 384]`` and the full number of tokens of each text ``int64 [n]``, before cutting.

        Texts are batched by length, 32 at most, and returned in the order given.
        """
        import torch

        out = np.empty((len(texts), TEXT_DIMENSION), np.float32)
        ids, tokens = self._ids(texts)
        with torch.inference_mode():
            for rows, states, mask in self._states(ids):
                weights = mask.unsqueeze(-1).float()
                pooled = (states * weights).sum(1) / weights.sum(1)
                out[rows] = torch.nn.functional.normalize(pooled, dim=-1).cpu().numpy()
        return out, tokens

    def tokens(self, texts: Sequence[str]) -> tuple[list[np.ndarray], np.ndarray]:
        """Unit vectors ``float32 [t, 384]`` of the tokens of each text, [CLS] and [SEP] left out, and the full numbers
        of tokens as in `embed`. A text without tokens of its own keeps its [CLS]."""
        import torch

        ids, tokens = self._ids(texts)
        out: list[np.ndarray] = [np.zeros((0, TEXT_DIMENSION), np.float32)] * len(ids)
        with torch.inference_mode():
            for rows, states, _ in self._states(ids):
                unit = torch.nn.functional.normalize(states, dim=-1).cpu().numpy()
                for at, row in enumerate(rows):
                    out[row] = unit[at, 1 : max(2, len(ids[row]) - 1)].copy()
        return out, tokens

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where each token of a text begins and ends in it, uncut; ``(0, 0)`` for [CLS] and [SEP]."""
        return self.tokenizer.encode(text).offsets

    def _ids(self, texts: Sequence[str]) -> tuple[list[list[int]], np.ndarray]:
        """Token ids of each text, cut to ``max_tokens``, and their numbers before cutting."""
        if not len(texts):
            return [], np.zeros(0, np.int64)
        ids = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        tokens = np.array([len(row) for row in ids], np.int64)
        return [row if len(row) <= self.max_tokens else [*row[: self.max_tokens - 1], row[-1]] for row in ids], tokens

    def _states(self, ids: Sequence[Sequence[int]]) -> Iterator[tuple[np.ndarray, Tensor, Tensor]]:
        """Last hidden states of batches of texts of like length: rows, states ``[n, t, 384]``, mask ``[n, t]``."""
        import torch

        order = np.argsort([len(row) for row in ids], kind="stable")
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            length = len(ids[rows[-1]])
            mask = torch.tensor([[1] * len(ids[i]) + [0] * (length - len(ids[i])) for i in rows]).to(self.device)
            batch = torch.tensor([[*ids[i]] + [0] * (length - len(ids[i])) for i in rows]).to(self.device)
            yield rows, self.model(input_ids=batch, attention_mask=mask).last_hidden_state, mask
