"""Figures: rows of results in, plotly Figures out, made for white paper; the page repaints them in its theme."""
