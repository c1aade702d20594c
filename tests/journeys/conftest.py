"""A real server and a real Chromium. Nothing here is skipped: where a browser is missing, the journey fails."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@dataclass
class Server:
    """A running app. ``url`` ends without a slash."""

    url: str
    workspace: Path
    uploads: Path
    log: Path
    process: subprocess.Popen


@pytest.fixture(scope="session")
def serve(tmp_path_factory) -> Iterator[Callable[..., Server]]:
    """Start the app on the demo library plus the data sets given; stopped at the end of the session."""
    started: list[Server] = []

    def start(*data: Path) -> Server:
        base = tmp_path_factory.mktemp("server")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {
            **os.environ,
            "M3R_DATA": ";".join(map(str, data)),
            "M3R_WORKSPACE": str(base / "workspace"),
            "GRADIO_TEMP_DIR": str(base / "uploads"),
            "GRADIO_SERVER_PORT": str(port),
            "HF_HUB_OFFLINE": "1",
        }
        log = base / "log"
        with log.open("wb") as stream:
            command = [sys.executable, "app.py"]
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=stream, stderr=subprocess.STDOUT)
        server = Server(f"http://127.0.0.1:{port}", base / "workspace", base / "uploads", log, process)
        started.append(server)
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(server.url, timeout=5).close()
                return server
            except OSError:
                assert process.poll() is None, f"the app ended: {log.read_text()}"
                assert time.monotonic() < deadline, f"the app does not answer: {log.read_text()}"
                time.sleep(0.2)

    yield start
    for server in started:
        server.process.terminate()
        server.process.wait(timeout=30)


@pytest.fixture(scope="session")
def demo_server(serve) -> Server:
    return serve()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    assert chromium, "Chromium is missing: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Visit:
    """A page with what went wrong on it and the hosts it asked."""

    page: Page
    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open the app in a fresh context; at the end no page may have an error or have asked another host."""
    visits: list[tuple[Visit, Server]] = []
    contexts = []

    def open_page(server: Server, width: int = 1440, height: int = 900, dark: bool = False) -> Visit:
        scheme = "dark" if dark else "light"
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        result = Visit(page)
        page.on("pageerror", lambda error: result.errors.append(str(error)))
        page.on("console", lambda m: result.errors.append(m.text) if m.type == "error" else None)
        page.on("request", lambda r: result.hosts.add(r.url.split("/")[2]) if r.url.startswith("http") else None)
        page.goto(server.url)
        page.locator("#facts strong").first.wait_for(timeout=60_000)
        page.locator("#domain label").first.wait_for(timeout=60_000)
        visits.append((result, server))
        return result

    yield open_page
    for result, server in visits:
        assert result.errors == []
        assert result.hosts == {server.url.removeprefix("http://")}
    for context in contexts:
        context.close()
