"""Editable installs of the core and every plugin, side by side in one environment, from a copy of the checkout.

Shows that they work together, and that a changed C++ source of the core, of a plugin, and a changed Python source are seen
by the next process without another install. Needs the build requirements installed: nothing is fetched.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from release import projects, tree


def run(*command: object, fails: bool = False, cwd: Path | None = None) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd)
    if (done.returncode != 0) != fails:
        sys.exit(f"{' '.join(words)} exited with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout + done.stderr


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    if text.count(old) != 1:
        sys.exit(f"{file}: `{old}` stands there {text.count(old)} times, this check changes it once")
    file.write_text(text.replace(old, new), encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="clover editable ü ") as folder:
        home = Path(folder)
        copy = home / "checkout"
        tree.export(copy)
        venv.create(home / "env", with_pip=False, symlinks=True, system_site_packages=False)
        python = home / "env" / "bin" / "python"
        (site,) = (home / "env").glob("lib/python*/site-packages")
        # The build requirements and NumPy come from the environment that runs this.
        (outer,) = {p for p in map(Path, sys.path) if p.name == "site-packages"}
        (site / "outer.pth").write_text(f"{outer}\n", encoding="utf-8")

        start = time.monotonic()
        for place in projects.find(copy).values():
            run(
                sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-build-isolation",
                "--no-index",
                "--config-settings", "editable.mode=redirect", "--editable", copy / place,
            )  # fmt: skip
        names = [name for name in projects.find(copy) if name != projects.CORE]
        print(f"core, {', '.join(names)} installed in place, {time.monotonic() - start:.0f} s", flush=True)

        def doctor() -> dict:
            text = run(python, "-m", "clover_ops", "doctor", "--json", cwd=home)
            if not text.startswith("{"):
                sys.exit(f"doctor --json printed\n{text}")
            return json.loads(text)

        report = doctor()
        states = {plugin["name"]: plugin["status"] for plugin in report["plugins"]}
        if sorted(states) != sorted(names) or "rejected" in states.values() or states.get("cpu") != "active":
            sys.exit(f"expected {names}, none rejected and the CPU active, found {report['plugins']}")
        print(f"side by side: {states}", flush=True)

        replace(copy / "common/clover_ops/cli/doctor.py", '"schema": 1,', '"schema": 1, "mark": "python",')
        if doctor().get("mark") != "python":
            sys.exit("a changed Python source was not seen")
        replace(copy / "backends/cpu/plugin.cpp", "isa: %s%s\\nthreads:", "isa: %s%s\\nchanged: here\\nthreads:")
        start = time.monotonic()
        details = next(plugin for plugin in doctor()["plugins"] if plugin["name"] == "cpu")["details"]
        if details.get("changed") != "here":
            sys.exit(f"a changed source of the CPU plugin was not rebuilt: {details}")
        print(
            f"a changed source of the plugin: rebuilt and seen by the next process, {time.monotonic() - start:.0f} s",
            flush=True,
        )
        replace(copy / "common/src/registry.cpp", '"plugin version "', '"PLUGIN version "')
        manifest = site / "clover_ops_cpu" / "plugin.manifest"
        other = home / "other"
        (other / "clover_ops_other").mkdir(parents=True)
        text = manifest.read_text(encoding="utf-8").replace("name cpu", "name other")
        text = "\n".join("version 9.9.9" if line.startswith("version") else line for line in text.splitlines())
        (other / "clover_ops_other" / "plugin.manifest").write_text(text + "\n", encoding="utf-8")
        start = time.monotonic()
        said = run("env", f"CLOVER_OPS_PLUGIN_PATH={other}", python, "-m", "clover_ops", "doctor", cwd=home, fails=True)
        if "PLUGIN version 9.9.9" not in said:
            sys.exit(f"a changed source of the core was not rebuilt:\n{said}")
        print(
            f"a changed source of the core: rebuilt and seen by the next process, {time.monotonic() - start:.0f} s",
            flush=True,
        )
        replace(copy / "common/src/registry.cpp", '"PLUGIN version "', '"PLUGIN version ')
        said = run(python, "-m", "clover_ops", "doctor", cwd=home, fails=True)
        if "the editable install of clover_ops does not build" not in said:
            sys.exit(f"a source that does not compile was not told:\n{said}")
        print("a source that does not compile: told by doctor, which exits with 1", flush=True)
    print("5 passed, 0 failed")


if __name__ == "__main__":
    main()
