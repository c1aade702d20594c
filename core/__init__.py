"""The core of M3Retrieve Explorer: data, encoders, indexes, search. It never imports the user interface."""

__version__ = "0.1.0"
