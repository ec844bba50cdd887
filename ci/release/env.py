"""Fresh virtual environments, filled from folders alone, by pip or by uv."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Done:
    code: int
    text: str


class Failure(AssertionError):
    """A step of the rehearsal did not go as it must."""


@dataclass(frozen=True)
class Env:
    home: Path
    links: tuple[Path, ...]
    by: str = "pip"  # or uv

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    @property
    def site(self) -> Path:
        (site,) = self.home.glob("lib/python*/site-packages")
        return site

    def run(self, *command: object, fails: bool = False, **variables: str) -> Done:
        """Runs a command outside the checkout. It must succeed or, with `fails`, must not."""
        words = [str(word) for word in command]
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_", "PYTHON", "CLOVER_OPS_"))}
        env = {
            **kept,
            "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}",
            "VIRTUAL_ENV": str(self.home),
            "PIP_NO_CACHE_DIR": "1",
        }
        # The configuration of pip or uv on this machine must not matter, nor their caches.
        env |= {
            "PIP_CONFIG_FILE": os.devnull,
            "UV_NO_CONFIG": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "NO_COLOR": "1",
            **variables,
        }
        done = subprocess.run(words, cwd=self.home, env=env, capture_output=True, text=True, check=False)
        text = done.stdout + done.stderr
        if (done.returncode != 0) != fails:
            raise Failure(f"`{' '.join(words)}` exited with {done.returncode}:\n{text[-3000:]}")
        return Done(done.returncode, text)

    def install(self, *words: str, fails: bool = False, links: tuple[Path, ...] | None = None) -> Done:
        places = [word for folder in links or self.links for word in ("--find-links", folder)]
        if self.by == "uv":
            cache = ("--cache-dir", self.home / "uv-cache")
            head = [sys.executable, "-m", "uv", "pip", "install", "--offline", *cache, "--python", self.python]
        else:
            head = [sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet"]
        return self.run(*head, "--no-index", *places, *words, fails=fails)

    def uninstall(self, *names: str) -> Done:
        if self.by == "uv":
            return self.run(sys.executable, "-m", "uv", "pip", "uninstall", "--python", self.python, *names)
        return self.run(sys.executable, "-m", "pip", "--python", self.python, "uninstall", "--quiet", "--yes", *names)

    def check(self, fails: bool = False) -> Done:
        """No requirement is unmet."""
        return self.run(sys.executable, "-m", "pip", "--python", self.python, "check", fails=fails)

    def installed(self) -> dict[str, str]:
        text = self.run(sys.executable, "-m", "pip", "--python", self.python, "list", "--format", "json").text
        return {item["name"]: item["version"] for item in json.loads(text[text.index("[") : text.rindex("]") + 1])}

    def ours(self) -> dict[str, str]:
        return {
            name: version
            for name, version in self.installed().items()
            if name.replace("_", "-").startswith("clover-ops")
        }

    def files(self) -> set[str]:
        return {path.relative_to(self.home).as_posix() for path in self.home.rglob("*") if "uv-cache" not in path.parts}


def fresh(home: Path, links: tuple[Path, ...], by: str = "pip") -> Env:
    venv.create(home, with_pip=False, symlinks=True)
    return Env(home, links, by)
