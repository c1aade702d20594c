"""From documents and an encoder to vectors that are stored once and found by content."""
