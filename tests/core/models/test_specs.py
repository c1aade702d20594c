from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from core.models import specs
from core.models.base import Encoder
from core.settings import REPOSITORY


@pytest.mark.parametrize("name", sorted(specs.SPECS))
def test_every_listed_model_has_an_adapter_and_a_consistent_row(name):
    spec = specs.get(name)
    assert spec.name == name
    assert set(spec.sides) <= {"image", "text"}
    assert spec.sides
    assert spec.requires
    if not spec.adapter:
        assert not spec.live
        with pytest.raises(KeyError, match="cannot be searched live"):
            specs.load(name)
        return
    assert callable(importlib.import_module(spec.adapter).load)
    encoder = specs.load(name, device="cpu")
    assert isinstance(encoder, Encoder)
    assert encoder.capabilities() == frozenset(spec.sides)
    assert encoder.spec is spec


def test_colours_differ():
    colours = [spec.colour for spec in specs.SPECS.values()]
    assert len(set(colours)) == len(colours)


def test_unknown_model_lists_the_known_ones():
    with pytest.raises(KeyError, match=r"'medlight'.*medlite"):
        specs.get("medlight")


def test_the_table_imports_nothing_heavy():
    code = (
        "import sys; import core.models.specs as s; s.get('medlite');"
        "import core.models.medlite, core.adapt.command;"
        "e = s.load('medlite'); e.encoder_id; e.default_weight('image');"
        "print([m for m in ('torch', 'timm', 'transformers', 'sentence_transformers', 'gradio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
