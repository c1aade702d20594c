"""One mechanism for everything on disk: the workspace, atomic writes, manifests with hashes, one lock."""
