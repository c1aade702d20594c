"""Jobs that were interrupted end like undisturbed ones, whoever continues them."""

from __future__ import annotations

import itertools
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from core.data.dataset import open_dataset, silent
from core.embed import plan as plans
from core.embed.pipeline import NotStored, Pace, Pipeline, text_key
from core.embed.vectors import VectorStore
from core.store.atomic import TEMPORARY
from core.store.workspace import Workspace


class Stop(BaseException):
    """Ends a job like a signal does."""


class Batched:
    """The toy encoder with the last bits of real ones: they depend on the batch and on the number of threads."""

    def __init__(self, toy) -> None:
        self.toy, self.dimension, self.encoder_id = toy, toy.dimension, "batched"
        self.batches: list[list[str]] = []
        self.stop_at = -1

    def capabilities(self):
        return self.toy.capabilities()

    def _touched(self, out: dict, longest: int) -> dict:
        out["single"] = out["single"] * np.float32(1 + longest * 2**-20) + np.float32(torch.get_num_threads() * 2**-22)
        return out

    def encode_texts(self, texts):
        if len(self.batches) == self.stop_at:
            raise Stop
        self.batches.append(list(texts))
        return self._touched(self.toy.encode_texts(texts), max(map(len, texts)) + len(texts))

    def encode_images(self, images):
        return self._touched(self.toy.encode_images(images), len(images))


TEXTS = [f"text {i} " + "word " * (i * 7 % 23) for i in range(43)]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(plans, "BLOCK", 5)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def files(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def store_files(pipeline: Pipeline, side: str = "text") -> dict[str, bytes]:
    return files(pipeline.workspace.path("vectors", pipeline.encoder.encoder_id, side))


def undisturbed(tmp_path, encoder, texts) -> dict[str, bytes]:
    pipeline = Pipeline(Batched(encoder), Workspace(tmp_path / "undisturbed"))
    pipeline.encode_texts(texts, silent)
    return store_files(pipeline)


def interrupted(workspace, encoder, after: int, texts=TEXTS) -> Batched:
    batched = Batched(encoder)
    batched.stop_at = after
    with pytest.raises(Stop):
        Pipeline(batched, workspace).encode_texts(texts, silent)
    return batched


@pytest.mark.parametrize("after", range(9))
def test_an_interrupted_job_ends_with_the_bytes_of_an_undisturbed_one(tmp_path, workspace, encoder, after):
    expected = undisturbed(tmp_path, encoder, TEXTS)
    interrupted(workspace, encoder, after)
    torch.set_num_threads(torch.get_num_threads() + 1)  # the plan's number counts, not that of who continues
    pipeline = Pipeline(Batched(encoder), workspace)
    done = pipeline.encode_texts(reversed(TEXTS), silent)
    assert store_files(pipeline) == expected
    assert done.encoded == len(TEXTS) - 5 * after == pipeline.done.encoded
    assert [f"{5 * after} of 43 texts" in note for note in done.notes] == ([True] if after else [])
    assert pipeline.encode_texts(TEXTS, silent).encoded == 0
    assert [p.name for p in pipeline.stores["text"].folder.iterdir()] == ["block-00000"]


def test_three_interruptions_and_a_larger_job_change_nothing(tmp_path, workspace, encoder):
    expected = undisturbed(tmp_path, encoder, TEXTS)
    for after in (2, 1, 3):
        interrupted(workspace, encoder, after)
    more = [f"later {i}" for i in range(7)]
    pipeline = Pipeline(Batched(encoder), workspace)
    pipeline.encode_texts(more + TEXTS, silent)
    found = store_files(pipeline)
    assert {name: data for name, data in found.items() if name.startswith("block-00000")} == expected
    assert pipeline.stores["text"].missing(map(text_key, more)) == []


def test_a_job_that_lacks_the_contents_leaves_the_plan_to_others(tmp_path, workspace, encoder):
    interrupted(workspace, encoder, 3)
    some = TEXTS[::2]
    other = Pipeline(Batched(encoder), workspace)
    other.encode_texts(some, silent)
    assert other.stores["text"].missing(map(text_key, some)) == []
    assert any(name.startswith("job-") for name in store_files(other))
    pipeline = Pipeline(Batched(encoder), workspace)
    pipeline.encode_texts(TEXTS, silent)
    assert not any(name.startswith("job-") for name in store_files(pipeline))
    whole = VectorStore(tmp_path / "undisturbed" / "vectors" / "batched" / "text", encoder.dimension)
    undisturbed(tmp_path, encoder, TEXTS)
    whole = VectorStore(whole.folder, encoder.dimension)
    keys = list(map(text_key, TEXTS))
    assert np.allclose(pipeline.stores["text"].get(keys), whole.get(keys), atol=1e-4)


def test_a_job_killed_after_joining_is_tidied_up_by_the_next(workspace, encoder, tmp_path, monkeypatch):
    expected = undisturbed(tmp_path, encoder, TEXTS)

    def stop(job):
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(plans, "discard", stop)
        with pytest.raises(Stop):
            Pipeline(Batched(encoder), workspace).encode_texts(TEXTS, silent)
    pipeline = Pipeline(Batched(encoder), workspace)
    assert any(name.startswith("job-") for name in store_files(pipeline))
    assert pipeline.encode_texts(TEXTS, silent).encoded == 0
    assert store_files(pipeline) == expected


@pytest.mark.parametrize("what", ["plan", "part", "block"])
def test_damage_is_said_and_made_good(tmp_path, workspace, encoder, what):
    expected = undisturbed(tmp_path, encoder, TEXTS)
    if what == "block":
        Pipeline(Batched(encoder), workspace).encode_texts(TEXTS, silent)
    else:
        interrupted(workspace, encoder, 4)
    folder = workspace.path("vectors", "batched", "text")
    name = {"plan": "job-*/keys.npy", "part": "job-*/part-00001/vectors.npy", "block": "block-*/vectors.npy"}[what]
    (victim,) = folder.glob(name)
    victim.write_bytes(victim.read_bytes()[:-1])
    pipeline = Pipeline(Batched(encoder), workspace)
    notes = pipeline.encode_texts(TEXTS, silent).notes
    assert any("damaged" in note and str(victim) in note for note in notes)
    assert store_files(pipeline) == expected


def test_a_reader_survives_that_another_process_joins_the_parts_it_knew(workspace, encoder):
    interrupted(workspace, encoder, 6)
    reader = Pipeline(Batched(encoder), workspace)
    keys = [k for k in map(text_key, TEXTS) if reader.stores["text"].has([k])[0]]
    before = reader.stores["text"].get(keys)
    assert len(keys) == 30
    Pipeline(Batched(encoder), workspace).encode_texts(TEXTS, silent)
    assert np.array_equal(reader.stores["text"].get(keys), before)


def test_nothing_waits_for_a_running_job_whose_rows_it_does_not_need(workspace, encoder):
    pipeline = Pipeline(Batched(encoder), workspace)
    pipeline.encode_texts(TEXTS[:3], silent)

    class During(Batched):
        def encode_texts(self, texts):
            assert pipeline.encode_texts(TEXTS[:3], silent).encoded == 0  # the lock is held meanwhile
            return super().encode_texts(texts)

    assert Pipeline(During(encoder), workspace).encode_texts(TEXTS, silent).encoded == len(TEXTS) - 3


def test_pictures_that_cannot_be_read_do_not_shift_the_blocks(tmp_path, toy, encoder):
    from PIL import Image

    for i in range(17):
        Image.new("RGB", (8, 8), (i * 13, 40, 200 - i)).save(toy / "images" / f"n{i:02}.png")
        if i % 4 == 0:
            (toy / "images" / f"n{i:02}.png").write_bytes(f"not a picture {i}".encode())

    def run(name: str, stop_at: int | None) -> tuple[dict[str, bytes], dict[str, str]]:
        workspace = Workspace(tmp_path / name)
        dataset = open_dataset(toy, workspace)
        collection = dataset.collections["query_to_image/Head"]
        for stop in ([stop_at] if stop_at is not None else []) + [None]:
            batched = Batched(encoder)
            pipeline = Pipeline(batched, workspace)
            known = pipeline.picture_keys(collection, [f"images/n{i:02}.png" for i in range(17)])
            pictures = {key: (collection, reference) for reference, key in known.items()}

            def progress(what: str, done: int, total: int, stop=stop) -> None:
                if stop is not None and done >= 5 * stop:
                    raise Stop

            try:
                result = pipeline.encode_pictures(pictures, progress)
            except Stop:
                assert stop is not None
        return store_files(pipeline, "image"), result.unreadable

    expected, unreadable = run("whole", None)
    assert len(unreadable) == 5
    for stop in (1, 2, 3):
        assert run(f"stopped-{stop}", stop) == (expected, unreadable)


def test_progress_counts_every_row_once_and_pace_adds_rate_and_time_left(workspace, encoder, monkeypatch):
    calls = []
    Pipeline(Batched(encoder), workspace).encode_texts(TEXTS, lambda *call: calls.append(call))
    assert calls[0] == ("Encoding texts", 0, 43) and calls[-1] == ("Encoding texts", 43, 43)
    assert [c[1] for c in calls] == sorted(c[1] for c in calls)

    now, words = [100.0], []
    monkeypatch.setattr("core.embed.pipeline.time.monotonic", lambda: now[0])
    pace = Pace(lambda *call: words.append(call))
    for done, at in ((0, 100.0), (50, 110.0), (100, 120.0), (3000, 700.0)):
        now[0] = at
        pace("Encoding texts", done, 3000)
    pace("Reading", 2, 5)
    assert words[0] == ("Encoding texts", 0, 3000)
    assert words[1] == ("Encoding texts · 5/s, about 10 min left", 50, 3000)
    assert words[3] == ("Encoding texts", 3000, 3000)
    assert words[4] == ("Reading", 2, 5)


def test_blocks_hold_neighbours_in_length_in_a_mixed_order(workspace, encoder):
    batched = Batched(encoder)
    Pipeline(batched, workspace).encode_texts(TEXTS, silent)
    assert sorted(t for batch in batched.batches for t in batch) == sorted(TEXTS)
    spans = [(min(map(len, b)), max(map(len, b))) for b in batched.batches]
    ordered = sorted(spans)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(ordered)) and spans != ordered
    assert len(batched.batches) == math.ceil(len(TEXTS) / 5)


def test_leftovers_of_a_killed_job_are_deleted(workspace, encoder):
    interrupted(workspace, encoder, 2)
    folder = workspace.path("vectors", "batched", "text")
    (job,) = folder.glob("job-*")
    shutil.copytree(job / "part-00000", job / f"{TEMPORARY}x")
    shutil.copytree(job, folder / f"{TEMPORARY}{job.name}")
    pipeline = Pipeline(Batched(encoder), workspace)
    pipeline.encode_texts(TEXTS, silent)
    assert not [name for name in store_files(pipeline) if TEMPORARY in name]


def test_with_stored_only_nothing_is_encoded_and_what_is_missing_is_counted(workspace, encoder, toy):
    filled = Pipeline(encoder, workspace)
    filled.encode_texts(TEXTS[:6], silent)
    dataset = open_dataset(toy, workspace)
    collection = dataset.collections["query_to_image/Head"]
    key = filled.picture_keys(collection, ["images/a1.png"])["images/a1.png"]
    before, files_before = encoder.encoded, store_files(filled)
    pipeline = Pipeline(encoder, workspace)
    pipeline.stored_only = True
    done = pipeline.encode_texts(["", *TEXTS[:6]], silent)
    assert (done.encoded, done.unreadable, done.notes) == (0, {}, [])
    with pytest.raises(NotStored, match="2 of the texts"):
        pipeline.encode_texts(TEXTS[4:8], silent)
    with pytest.raises(NotStored, match="1 of the images"):
        pipeline.encode_pictures({key: (collection, "images/a1.png")}, silent)
    assert encoder.encoded == before and store_files(filled) == files_before
    filled.encode_pictures({key: (collection, "images/a1.png")}, silent)
    again = Pipeline(encoder, workspace)
    again.stored_only = True
    assert again.encode_pictures({key: (collection, "images/a1.png")}, silent).encoded == 0


def test_with_stored_only_an_unfinished_job_is_left_alone(workspace, encoder):
    interrupted(workspace, encoder, 3)
    pipeline = Pipeline(Batched(encoder), workspace)
    before = store_files(pipeline)
    assert any(name.startswith("job-") for name in before)
    pipeline.stored_only = True
    with pytest.raises(NotStored, match="28 of the texts"):
        pipeline.encode_texts(TEXTS, silent)
    stored = [t for t in TEXTS if pipeline.stores["text"].has([text_key(t)])[0]]
    assert len(stored) == 15 and pipeline.encode_texts(stored, silent).encoded == 0
    assert store_files(pipeline) == before
