"""The commands of ``python -m core``, by what they work on."""
