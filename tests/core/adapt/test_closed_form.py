from __future__ import annotations

import numpy as np
import pytest

from core.adapt.closed_form import assign_folds, case_success, fit, ridge_path


def planted(cases: int = 40, per_case: int = 3, noise: float = 0.05):
    """Pairs under a planted linear map: texts are near a case's centre, pictures map to texts exactly, plus noise."""
    rng = np.random.default_rng(5)
    codes = np.repeat(np.arange(cases), per_case)
    features = rng.normal(size=(cases, 12))[codes] + 0.1 * rng.normal(size=(len(codes), 12)) + 3
    plan = rng.normal(size=(12, 6))
    targets = features @ plan + noise * rng.normal(size=(len(codes), 6)) + 1
    return features, targets, codes, plan


def test_ridge_against_least_squares_on_the_stacked_system():
    features, targets, _, _ = planted()
    penalties = [0.5, 7.0, 400.0]
    x, y = features - features.mean(0), targets - targets.mean(0)
    for penalty, head in zip(penalties, ridge_path(features, targets, penalties), strict=True):
        stacked = np.vstack([x, np.sqrt(penalty) * np.eye(12)])
        wanted = np.linalg.lstsq(stacked, np.vstack([y, np.zeros((12, 6))]), rcond=None)[0]
        np.testing.assert_allclose(head.weights, wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(head.image_mean, features.mean(0), rtol=1e-6)
        np.testing.assert_allclose(head.text_mean, targets.mean(0), rtol=1e-6)


def test_more_features_than_pairs():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(10, 30)), rng.normal(size=(10, 4))
    centred = x - x.mean(0)
    wanted = np.linalg.solve(centred.T @ centred + 2 * np.eye(30), centred.T @ (y - y.mean(0)))
    np.testing.assert_allclose(ridge_path(x, y, [2.0])[0].weights, wanted, rtol=1e-4, atol=1e-5)


def test_a_planted_map_is_found():
    """Half of the directions are large and say nothing, so a large penalty hides what the small ones say."""
    features, _, codes, plan = planted(cases=200)
    features = (features - 3) * np.repeat([0.05, 20.0], 6)
    plan = np.where(np.arange(12)[:, None] < 6, plan, 0)
    found = fit(features, features @ plan, codes.tolist(), [1e-6, 1e4])
    assert found.penalty == 1e-6
    np.testing.assert_allclose(found.head.weights, plan, atol=1e-3)
    best, worst = found.table
    assert best.text_to_image > 0.95 > worst.text_to_image
    assert best.text_cases == best.image_cases == 200


def test_the_table_against_a_plain_loop():
    """Oracle: folds, heads and Success@10 written out one query at a time."""
    features, targets, codes, _ = planted(cases=60, noise=3.0)
    groups = (codes // 2).tolist()  # two cases a topic
    penalties = [1.0, 50.0]
    found = fit(features, targets, groups, penalties, cases=codes.tolist(), folds=3, repeats=2, seed=4)
    assert found.penalty == max(found.table, key=lambda score: score.text_to_image + score.image_to_image).penalty
    for score in found.table:
        by_text, by_image = {}, {}
        for draw, number in ((4, 0), (4, 1), (4, 2), (5, 0), (5, 1), (5, 2)):
            fold = assign_folds(groups, 3, draw)
            inside = np.flatnonzero(fold == number)
            x, y = features[fold != number], targets[fold != number]
            x0, y0 = x.mean(0), y.mean(0)
            w = np.linalg.solve((x - x0).T @ (x - x0) + score.penalty * np.eye(12), (x - x0).T @ (y - y0))
            images = {i: (features[i] - x0) @ w / np.linalg.norm((features[i] - x0) @ w) for i in inside}
            texts = {i: (targets[i] - y0) / np.linalg.norm(targets[i] - y0) for i in inside}
            for i in inside:
                ranked = sorted(inside, key=lambda j: -(texts[i] @ images[j]))[:10]
                by_text.setdefault(codes[i], []).append(any(codes[j] == codes[i] for j in ranked))
                ranked = sorted(inside[inside != i], key=lambda j: -(images[i] @ images[j]))[:10]
                by_image.setdefault(codes[i], []).append(any(codes[j] == codes[i] for j in ranked))
        assert 0.2 < score.text_to_image < 1
        assert score.text_to_image == pytest.approx(np.mean([np.mean(v) for v in by_text.values()]))
        assert score.image_to_image == pytest.approx(np.mean([np.mean(v) for v in by_image.values()]))


def test_no_group_is_on_both_sides_of_a_fold(monkeypatch):
    """Every head that is scored was fitted without any row of the topics it is scored on."""
    import core.adapt.closed_form as module

    features, targets, codes, _ = planted()
    groups = (codes // 4).tolist()
    topic_of = {row.tobytes(): group for row, group in zip(features, groups, strict=True)}
    fitted_on: list[set[int]] = []
    scored_on: list[set[int]] = []
    real_path, real_images = module.ridge_path, module.Head.images

    def path(x, y, penalties):
        fitted_on.append({topic_of[row.tobytes()] for row in x})
        return real_path(x, y, penalties)

    def images(head, x):
        scored_on.append({topic_of[row.tobytes()] for row in x})
        return real_images(head, x)

    monkeypatch.setattr(module, "ridge_path", path)
    monkeypatch.setattr(module.Head, "images", images)
    fit(features, targets, groups, [1.0], repeats=1)
    assert len(scored_on) == 5
    for fitted, scored in zip(fitted_on[:5], scored_on, strict=True):
        assert not fitted & scored
        assert fitted | scored == set(groups)
    assert set.union(*scored_on) == set(groups)
    assert fitted_on[5] == set(groups)  # the head that is returned


def test_labels_from_a_leaking_topic_do_not_help():
    """Texts that are noise but equal within a topic: only a head that saw the topic could place them."""
    rng = np.random.default_rng(3)
    codes = np.repeat(np.arange(200), 2)
    features = rng.normal(size=(200, 300))[codes]
    targets = rng.normal(size=(200, 8))[codes]
    found = fit(features, targets, codes.tolist(), [1e-3])
    assert found.table[0].text_to_image < 0.35  # chance: 10 of 40 topics of a fold, two pictures each: about 0.13
    images, texts = found.head.images(features), found.head.texts(targets)
    assert np.mean(list(case_success(texts, images, codes, own=True).values())) > 0.95


def test_the_same_input_gives_the_same_bytes():
    features, targets, codes, _ = planted(noise=1.0)
    first, second = (fit(features, targets, codes.tolist(), [1.0, 10.0], seed=3) for _ in range(2))
    assert first.head.weights.tobytes() == second.head.weights.tobytes()
    assert first.table == second.table


def test_folds_are_whole_balanced_and_drawn_by_the_seed():
    groups = [f"topic {n % 23}" for n in range(100)]
    fold = assign_folds(groups, 5, 1)
    by_group = {group: set(fold[[g == group for g in groups]].tolist()) for group in groups}
    assert all(len(folds) == 1 for folds in by_group.values())
    sizes = np.bincount([next(iter(folds)) for folds in by_group.values()])
    assert sorted(sizes) == [4, 4, 5, 5, 5]
    assert (fold != assign_folds(groups, 5, 2)).any()
    # the order of the rows does not matter
    np.testing.assert_array_equal(assign_folds(groups[::-1], 5, 1), fold[::-1])


def test_ties_take_the_larger_penalty():
    features, targets, codes, _ = planted(noise=0)
    assert fit(features, targets, codes.tolist(), [1e-9, 1e-8]).penalty == 1e-8


def test_refusals():
    features, targets, codes, _ = planted()
    with pytest.raises(ValueError, match="120 features, 119 targets, 120 groups"):
        fit(features, targets[1:], codes.tolist(), [1.0])
    with pytest.raises(ValueError, match="5 folds over 3 groups"):
        assign_folds([1, 2, 3], 5, 0)
