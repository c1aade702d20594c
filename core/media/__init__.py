"""Pictures: where a data set keeps them, the one safe way to open them, and their thumbnails."""
