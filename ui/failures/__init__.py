"""The Failure cases tab."""
