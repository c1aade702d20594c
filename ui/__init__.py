"""The user interface: it shows what core computes, and computes nothing itself."""
