"""Alignment heads fitted on training cases."""
