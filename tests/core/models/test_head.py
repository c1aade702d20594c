from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from core.models.head import Head, Side, as_stored, gelu, normalise, read_head, write_head


def side(p: int, m: int, h: int, seed: int) -> Side:
    rng = np.random.default_rng(seed)
    shapes = ((p,), (p, h), (p, m), (m,), (m, h))
    return Side(*(rng.standard_normal(shape).astype(np.float32) for shape in shapes))


@pytest.fixture
def head() -> Head:
    axes = np.random.default_rng(9).standard_normal((10, 3)).astype(np.float32)
    return Head(side(10, 7, 4, 1), side(6, 7, 4, 2), axes, 0.25, 0.75)


def rows(n: int, p: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, p)).astype(np.float32)


def test_a_side_is_a_linear_map_plus_a_hidden_layer(head):
    """Oracle: torch's own layers."""
    s, x = head.image, torch.from_numpy(rows(5, 10))
    z = x - torch.from_numpy(s.mean)
    hidden = torch.nn.functional.linear(z, torch.from_numpy(s.hidden.T.copy()), torch.from_numpy(s.hidden_bias))
    hidden = torch.nn.functional.gelu(hidden, approximate="tanh")
    wanted = z @ torch.from_numpy(s.linear) + hidden @ torch.from_numpy(s.out)
    np.testing.assert_allclose(s(x.numpy()), torch.nn.functional.normalize(wanted, dim=1).numpy(), atol=1e-5)
    values = np.linspace(-5, 5, 101, dtype=np.float32)
    exact = torch.nn.functional.gelu(torch.from_numpy(values), approximate="tanh").numpy()
    np.testing.assert_allclose(gelu(values), exact, atol=1e-6)


def test_blocks_lie_where_they_should_with_their_shares(head):
    images, texts = head.images(rows(5, 10)), head.texts(rows(5, 6))
    for vectors in (images, texts):
        assert vectors.shape == (5, head.dimension) == (5, 3 + 6 + 4)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert not images[:, 3:9].any()
    assert not texts[:, :3].any()
    np.testing.assert_allclose((images[:, :3] ** 2).sum(1), 0.25, atol=1e-6)
    np.testing.assert_allclose((texts[:, 3:9] ** 2).sum(1), 0.75, atol=1e-6)


def test_products_of_blocks(head):
    """Pictures compare by both blocks, a picture with a text by the head alone."""
    x, t = rows(4, 10), rows(4, 6)
    frozen, shared = head.frozen_images(x), head.image(x)
    np.testing.assert_allclose(
        head.images(x) @ head.images(x).T, 0.25 * frozen @ frozen.T + 0.75 * shared @ shared.T, atol=1e-5
    )
    scale = np.sqrt(0.75 * 0.25)
    np.testing.assert_allclose(head.images(x) @ head.texts(t).T, scale * shared @ head.text(t).T, atol=1e-5)
    words = normalise(t)
    np.testing.assert_allclose(
        head.texts(t) @ head.texts(t).T, 0.75 * words @ words.T + 0.25 * head.text(t) @ head.text(t).T, atol=1e-5
    )


def test_written_and_read_back(head, tmp_path):
    means = {name: rows(1, head.dimension)[0] for name in ("image", "text")}
    write_head(tmp_path / "head.safetensors", head, means)
    found, again = read_head(tmp_path / "head.safetensors", 0.25, 0.75)
    for name in means:
        np.testing.assert_array_equal(again[name], means[name])
    for one, other in ((found.image, head.image), (found.text, head.text)):
        np.testing.assert_array_equal(one.mean, other.mean)
        np.testing.assert_array_equal(one.hidden_bias, other.hidden_bias)
        for name in ("linear", "hidden", "out"):
            rounded = torch.from_numpy(getattr(other, name)).to(torch.bfloat16).float().numpy()
            np.testing.assert_array_equal(getattr(one, name), rounded)
    stored = as_stored(head)
    x = rows(5, 10)
    np.testing.assert_array_equal(stored.images(x), found.images(x))
    # a head that was read is written without another loss
    write_head(tmp_path / "again.safetensors", replace(found, alpha=0.0), again)
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "head.safetensors").read_bytes()


def test_zeros_stay_zeros():
    assert not normalise(np.zeros((2, 3), np.float32)).any()


def test_reading_without_torch_gives_what_the_library_gives(head, tmp_path):
    from safetensors.torch import load_file

    path = tmp_path / "head.safetensors"
    write_head(path, head, {"image": np.ones(13, np.float32) / 3, "text": np.ones(13, np.float32) / 7})
    wanted = {name: tensor.float().numpy() for name, tensor in load_file(path).items()}
    found, means = read_head(path, 0.25, 0.75)
    assert np.array_equal(found.components, wanted["components"]) and found.components.dtype == np.float32
    for name in ("mean", "linear", "hidden", "hidden_bias", "out"):
        for mine, theirs in ((found.image, "image"), (found.text, "text")):
            assert np.array_equal(getattr(mine, name), wanted[f"{theirs}.{name}"])
    assert all(np.array_equal(means[side], wanted[f"shipped_mean.{side}"]) for side in means)
