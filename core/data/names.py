"""Ids in files that forbid white space: percent-encoded, in a pool with the collection in front."""

from __future__ import annotations

from urllib.parse import quote, unquote


def trec_name(identity: str) -> str:
    """The id of a query or document of one collection, percent-encoded."""
    return quote(identity, safe="")


def trec_id(collection: str, identity: str) -> str:
    """The id of a document of a pool: percent-encoded collection and id."""
    return f"{quote(collection, safe='')}/{quote(identity, safe='')}"


def document(trec: str, place: str) -> tuple[str, str]:
    """The (collection, id) that a TREC id means in a run of ``place``; queries are spelled alike."""
    collection, slash, identity = trec.partition("/")
    return (unquote(collection), unquote(identity)) if slash else (place, unquote(trec))
