"""Exact and HNSW search over the vectors of a pool, behind one protocol."""
