"""Data sets as they are on disk, turned into collections and pools; one adapter a source."""
