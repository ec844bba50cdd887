"""Folders of wheels that stand in for an index: ours, and what they depend on."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

# What the rehearsal installs besides our wheels.
DEPENDENCIES = ["apache-tvm-ffi>=0.1.15,<0.2", "click>=8.1", "numpy>=1.25", "ml_dtypes>=0.4"]


def fill(folder: Path) -> None:
    """Fetches the dependencies into `folder`, unless it holds them: then no network is needed."""
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    there = [
        *pip,
        "install",
        "--quiet",
        "--dry-run",
        "--ignore-installed",
        "--no-index",
        "--find-links",
        str(folder),
        *DEPENDENCIES,
    ]
    if subprocess.run(there, capture_output=True, check=False).returncode == 0:
        return
    subprocess.run(
        [*pip, "download", "--quiet", "--only-binary", ":all:", "--dest", str(folder), *DEPENDENCIES], check=True
    )


def vendor_wheel(folder: Path, project: str, version: str) -> None:
    """A wheel that stands for a vendor's build of a project: what matters is its version, which an index lacks."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{project}-{version}.dist-info"
    members = {
        f"{project}/__init__.py": f'__version__ = "{version}"\n',
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: rehearsal\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for name, text in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(text)}")
    members[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"]) + "\n"
    with zipfile.ZipFile(folder / f"{project}-{version}-py3-none-any.whl", "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
