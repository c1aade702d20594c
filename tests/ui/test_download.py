"""Downloads without a browser: names, bytes, limits."""

from __future__ import annotations

import base64
import json

import pytest

from ui import download
from ui.download import payload, safe_name


def test_bytes_arrive_with_name_and_type():
    sent = json.loads(payload("slice.csv", "text/csv", b"a,b\n\x00\xff"))
    assert (sent["name"], sent["type"]) == ("slice.csv", "text/csv")
    assert base64.b64decode(sent["base64"]) == b"a,b\n\x00\xff"


def test_the_same_file_is_news_every_time():
    assert payload("a.csv", "text/csv", b"x") != payload("a.csv", "text/csv", b"x")


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("failures medlite, Head.csv", "failures-medlite-Head.csv"),
        ("../../etc/passwd", "etc-passwd"),
        (".bashrc", "bashrc"),
        ("C:\\x\\y.csv", "C-x-y.csv"),
        ('a"<b>\r\n.html', "a-b-.html"),
        ("Röntgen.csv", "R-ntgen.csv"),
        ("", "download"),
        ("...", "download"),
        ("x" * 300 + ".csv", "x" * 96 + ".csv"),
        ("x" * 300, "x" * 100),
    ],
)
def test_names_are_safe(name, safe):
    assert safe_name(name) == safe and len(safe) <= download.LONGEST
    assert json.loads(payload(name, "text/csv", b""))["name"] == safe


def test_what_is_too_large_is_said_and_not_sent(monkeypatch):
    monkeypatch.setattr(download, "MAX_BYTES", 2 << 20)
    assert "base64" in json.loads(payload("a.csv", "text/csv", bytes(2 << 20)))
    sent = json.loads(payload("<a>.csv", "text/csv", bytes((2 << 20) + 600_000)))
    assert set(sent) == {"problem", "nonce"}
    assert sent["problem"] == "a-.csv would have 2.6 MiB; at most 2 MiB are sent. Choose fewer rows."


@pytest.mark.parametrize("mime", ["", "csv", "text/csv; x", 'text/"html', "text/csv\n"])
def test_a_wrong_type_is_refused(mime):
    with pytest.raises(ValueError, match="media type"):
        payload("a.csv", mime, b"")
