"""Encoders: the table of models, their contract, and one adapter a family."""
