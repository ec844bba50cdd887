"""Builds the documentation: `python ci/build_docs.py OUT`. Every warning is an error, and generated pages must be current."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from release import summary
from release.projects import ROOT


def main() -> int:
    out, start = Path(sys.argv[1]), time.monotonic()
    generated = [sys.executable, "-m", "declgen", "files", "--check"]
    if code := subprocess.run(generated, cwd=ROOT, env={"PYTHONPATH": "common"}, check=False).returncode:
        return code
    sphinx = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-E", "-b", "html", "docs", str(out)]
    if code := subprocess.run([*sphinx, *sys.argv[2:]], cwd=ROOT, check=False).returncode:
        return code
    pages = list(out.rglob("*.html"))
    formulas = sum(page.read_text(encoding="utf-8").count("<math") for page in pages)
    text = f"{len(pages)} pages, {formulas} formulas, no warning"
    summary.save(summary.FILE, "docs", {"text": text})
    print(f"{text}, {time.monotonic() - start:.0f} s: {out / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
