"""Retrievers of every paradigm behind one protocol: each ranks a place, a collection or a whole pool."""
