"""A manifest matches its files and its request, or is refused with the reason, whatever its bytes."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.store import manifest
from core.store.manifest import ManifestError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
REQUEST = {"format": 1, "words": "a", "list": [1, 2]}


@pytest.fixture
def stored(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "a").write_bytes(b"aaa")
    (tmp_path / "below" / "b").write_bytes(b"bbb")
    manifest.write(tmp_path, REQUEST, ["below/b", "a"], {"n": 3})
    return tmp_path


@given(JSON)
@settings(deadline=None)
def test_canonical_bytes_are_json_and_do_not_depend_on_the_order_of_keys(value):
    def turned(v):
        if isinstance(v, dict):
            return {k: turned(v[k]) for k in reversed(v)}
        return [turned(x) for x in v] if isinstance(v, list) else v

    assert json.loads(manifest.canonical(value)) == value
    assert manifest.canonical(turned(value)) == manifest.canonical(value)
    assert manifest.short_hash(value) == hashlib.sha256(manifest.canonical(value)).hexdigest()[:16]


def test_names_of_files_that_are_no_valid_text_have_canonical_bytes_too():
    assert manifest.canonical({"a": "\udcff"}) != manifest.canonical({"a": "\udcfe"})


def test_what_was_written_is_read(stored):
    body = manifest.read(stored, REQUEST, hashes=True)
    assert body["request"] == REQUEST and body["facts"] == {"n": 3}
    assert body["files"]["a"] == {"size": 3, "sha256": hashlib.sha256(b"aaa").hexdigest()}
    assert list(body["files"]) == ["a", "below/b"]


def test_the_order_of_a_request_and_tuples_make_no_difference(stored):
    manifest.read(stored, {"list": (1, 2), "words": "a", "format": 1})


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        ({**REQUEST, "format": 2}, "format differ"),
        ({**REQUEST, "more": 1}, "more differ"),
        ({"format": 1}, "list, words differ"),
        ({**REQUEST, "list": [2, 1], "words": "b"}, "list, words differ"),
    ],
)
def test_another_request_is_refused_and_the_difference_named(stored, request_, named):
    with pytest.raises(ManifestError, match=named):
        manifest.read(stored, request_)


def test_a_missing_shortened_or_changed_file_is_refused_by_name(stored):
    with pytest.raises(ManifestError, match="nothing complete"):
        manifest.read(stored / "below")
    (stored / "below" / "b").write_bytes(b"bbB")
    manifest.read(stored)  # sizes only
    with pytest.raises(ManifestError, match=r"below/b does not have the content"):
        manifest.read(stored, hashes=True)
    (stored / "below" / "b").write_bytes(b"bb")
    with pytest.raises(ManifestError, match=r"below/b is missing or has another size"):
        manifest.read(stored)
    (stored / "below" / "b").unlink()
    with pytest.raises(ManifestError, match=r"below/b is missing"):
        manifest.read(stored)


@given(
    st.binary(max_size=60)
    | JSON.map(lambda v: json.dumps(v).encode())
    | st.fixed_dictionaries({"files": JSON, "request": JSON}).map(lambda v: json.dumps(v).encode())
)
@example(b'{"files": {}, "request": {"a": NaN}}')
@example(b'{"files": {"a": {"size": 1}}, "request": {}}')
@example(b"[" * 100_000)
@settings(deadline=None)
def test_whatever_a_manifest_holds_it_is_read_or_refused(content):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / manifest.NAME).write_bytes(content)
        try:
            body = manifest.read(Path(folder), hashes=True)
        except ManifestError:
            return
        assert body["files"] == {} and isinstance(body["request"], dict)


def test_a_folder_in_its_place_is_refused(tmp_path):
    (tmp_path / manifest.NAME).mkdir()
    with pytest.raises(ManifestError, match="cannot be read"):
        manifest.read(tmp_path)
