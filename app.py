"""Start M3Retrieve Explorer: ``python app.py``, then open http://127.0.0.1:7860."""

from __future__ import annotations

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from core.context import AppContext
from core.store.workspace import WorkspaceError
from ui.app import build, launch_options

try:
    context = AppContext()
except (WorkspaceError, ValueError) as error:
    raise SystemExit(f"Error: {error}") from None
demo = build(context)

if __name__ == "__main__":
    if context.workspace.note:
        print(context.workspace.note)
    demo.launch(**launch_options())
