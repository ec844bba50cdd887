"""The life of a release, in fresh environments and without an index: `python -m release.rehearse dist/release dist/next`.

The first folder holds the wheels of this version, the second those of the next one, built from the same sources. Each step
says what it saw; the first that goes wrong ends the rehearsal.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from packaging.version import Version

from . import env, index, summary, wheel
from .data import Data, load
from .projects import CORE, ROOT, distribution

MACHINE = "x86_64"
SMOKE = """
import json, sys
import numpy as np
import clover_ops
x = np.linspace(-3, 3, 8, dtype=np.float32).reshape(1, 2, 4)
y = clover_ops.rms_norm_gated(x, np.ones(4, np.float32), np.full_like(x, 2.0), eps=1e-6)
gate = 2 / (1 + np.exp(-2.0))
want = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * gate
assert np.allclose(y, want, rtol=1e-5), (y, want)
assert "site-packages" in clover_ops.__file__, clover_ops.__file__
print("rms_norm_gated agrees to", float(abs(y - want).max()))
"""
CONSUMER = """
#include <clover/ops.h>
#include <cstdio>
int main() {
  float x[4] = {1, 2, 3, 4}, y[4] = {};
  clover::cast({}, clover::TensorView(x, clover::DType::kFloat32, {4}), clover::TensorView(y, clover::DType::kFloat32, {4}));
  std::printf("%g\\n", y[3]);
  return y[0] == 1 && y[3] == 4 && clover::supports(clover::Op::kCast, {CLOVER_CPU, 0}) ? 0 : 1;
}
"""


class Rehearsal:
    def __init__(self, data: Data, now: Path, following: Path, dependencies: Path, work: Path):
        self.data, self.now, self.following, self.dependencies, self.work = data, now, following, dependencies, work
        self.names = [n for n in data.projects if MACHINE in data.machines(n)]
        self.backends = [n for n in self.names if n != CORE]
        (self.version,) = {w.version for w in wheel.find(now)}
        (self.next_version,) = {w.version for w in wheel.find(following)}
        if Version(self.next_version) <= Version(self.version):
            sys.exit(f"{following} must hold a later version than {self.version}, it holds {self.next_version}")
        self.rows: list[dict] = []
        self.count = 0

    def fresh(self, by: str = "pip", following: bool = False, extra: tuple[Path, ...] = ()) -> env.Env:
        self.count += 1
        links = (self.now, *((self.following,) if following else ()), self.dependencies, *extra)
        return env.fresh(self.work / f"env-{self.count}", links, by)

    def step(self, title: str, body, *arguments) -> None:
        start = time.monotonic()
        print(f"{title} ...", flush=True)
        row = {"step": title, "seen": "", "result": "FAILED", "seconds": 0.0}
        self.rows.append(row)
        try:
            row["seen"] = body(*arguments)
            row["result"] = "passed"
        finally:
            row["seconds"] = time.monotonic() - start
            print(f"  {row['result']}, {row['seconds']:.0f} s: {row['seen']}", flush=True)

    # What is expected

    def all_of(self, version: str, *names: str) -> dict[str, str]:
        return {distribution(name): version for name in (names or self.names)}

    # The steps

    def extra(self, extra: str, by: str) -> str:
        there = self.fresh(by)
        there.install(f"clover-ops[{extra}]")
        names = self.names if extra == "all" else [CORE, extra]
        expect(there.ours(), self.all_of(self.version, *names))
        there.check()
        states = self.doctor(there)
        expect(sorted(states), sorted(n for n in names if n != CORE))
        return f"{len(names)} distributions; " + "; ".join(f"{name} {state}" for name, state in states.items())

    def doctor(self, there: env.Env) -> dict[str, str]:
        """Each plugin's state. None may be rejected; what is inactive says why."""
        report = json.loads(there.run(there.home / "bin" / "clover-ops", "doctor", "--json").text)
        states = {}
        for plugin in report["plugins"]:
            if plugin["status"] not in ("active", "inactive") or (
                plugin["status"] == "inactive" and not plugin["reason"]
            ):
                raise env.Failure(f"plugin {plugin['name']}: {plugin['status']}: {plugin['reason']}")
            reason = plugin["reason"].split(":")[0]
            states[plugin["name"]] = plugin["status"] + (f" ({reason})" if reason else "")
        if states.get("cpu", "active") != "active":
            raise env.Failure(f"the CPU backend is {states['cpu']}")
        return states

    def smoke(self) -> str:
        """The installed wheels at work: from Python, the demo, and from C++ with the machine's own compiler."""
        there = self.fresh()
        there.install("clover-ops[cpu,demo]")
        said = there.run(there.python, "-c", SMOKE).text.strip()
        demo = there.run(there.home / "bin" / "clover-ops", "demo", "--blocks", "1", "--json").text
        if json.loads(demo).get("ok") is False:
            raise env.Failure(f"the demo's checks failed:\n{demo[-2000:]}")
        (there.home / "engine.cpp").write_text(CONSUMER, encoding="utf-8")
        package = there.site / "clover_ops"
        compiler = shutil.which("c++") or shutil.which("g++")
        if compiler is None:
            raise env.Failure("no C++ compiler: the C++ half of the smoke test cannot run")
        there.run(
            compiler, "-std=c++17", "engine.cpp", "-o", "engine", f"-I{package}/include", f"-L{package}/lib", "-lclover_ops",
            f"-Wl,-rpath,{package}/lib",
        )  # fmt: skip
        there.run(there.home / "engine")
        return f"Python: {said}; the demo; a C++ program by {Path(compiler).name}"

    def upgrade(self, by: str) -> str:
        there = self.fresh(by, following=True)
        there.install(f"clover-ops[all]=={self.version}")
        expect(there.ours(), self.all_of(self.version))
        there.install("--upgrade", "clover-ops[all]")
        expect(there.ours(), self.all_of(self.next_version))
        there.check()
        self.doctor(there)
        there.install(f"clover-ops[all]=={self.version}")
        expect(there.ours(), self.all_of(self.version))
        there.check()
        self.doctor(there)
        return f"{self.version} → {self.next_version} → {self.version}, {len(self.names)} distributions, no plugin rejected"

    def mixed_pair(self, by: str) -> str:
        there = self.fresh(by, following=True)
        plugin = distribution(self.backends[0])
        said = there.install(f"clover-ops=={self.version}", f"{plugin}=={self.next_version}", fails=True).text
        for word in (plugin, self.next_version, self.version):
            if word not in said:
                raise env.Failure(f"the refusal does not name {word}:\n{said}")
        expect(there.ours(), {})
        reason = next(line.strip() for line in said.splitlines() if "clover-ops==" in line)
        return f"refused before anything is installed: “{reason.partition(': ')[2][:150]}”"

    def forced_pair(self) -> str:
        """Who forces it past the installer hears of it from every side."""
        there = self.fresh("pip", following=True)
        plugin = self.backends[0]
        there.install(f"clover-ops[demo]=={self.version}")
        there.install("--no-deps", f"{distribution(plugin)}=={self.next_version}")
        there.check(fails=True)
        said = there.run(there.home / "bin" / "clover-ops", "doctor", fails=True).text
        reason = f"plugin version {self.next_version}, core version {self.version}"
        if reason not in said:
            raise env.Failure(f"doctor does not say `{reason}`:\n{said}")
        call = there.run(there.python, "-c", SMOKE, fails=True).text
        if reason not in call or "Unsupported" not in call:
            raise env.Failure(f"the call does not say `{reason}`:\n{call}")
        return f"pip check fails; doctor exits 1 and a call raises Unsupported: “{reason}”"

    def uninstall(self, by: str) -> str:
        """Every order, after the packages were used, so that byte code lies about."""
        there = self.fresh(by)
        there.install("clover-ops[demo]")
        there.uninstall("clover-ops")
        before = there.files()
        orders = list(itertools.permutations(self.names))
        for number, order in enumerate(orders):
            there.install("--no-deps", *(distribution(name) for name in self.names))
            there.run(there.home / "bin" / "clover-ops", "doctor")
            if number == 0:  # once one by one: what stays goes on working
                for name in reversed(order):
                    there.uninstall(distribution(name))
                    if name not in (CORE, self.backends[0]):
                        there.run(there.home / "bin" / "clover-ops", "doctor")
            else:
                there.uninstall(*(distribution(name) for name in order))
            left = sorted(f for f in there.files() - before if "clover" in f.lower())
            if left:
                raise env.Failure(f"uninstalling {', '.join(order)} leaves {', '.join(left[:8])}")
        return f"{len(orders)} orders of {len(self.names)} distributions, nothing of ours left"

    def every_extra(self, by: str) -> str:
        """All extras of the core together, torch and triton standing in for the public ones."""
        (core,) = (w for w in wheel.find(self.now) if w.name == CORE and w.machine == MACHINE)
        extras = sorted(core.metadata.get_all("Provides-Extra", []))
        folder = self.work / "public"
        for project in ("torch", "triton"):
            index.vendor_wheel(folder, project, "9.9.0")
        there = self.fresh(by, extra=(folder,))
        there.install(f"clover-ops[{','.join(extras)}]")
        expect(there.ours(), self.all_of(self.version))
        there.check()
        return f"{', '.join(extras)} together: no conflict, pip check passes"

    def vendor(self, by: str) -> str:
        """A vendor's torch and triton, older than anything on an index, stay when our extras ask for them."""
        folder, versions = self.work / "vendor", {"torch": "2.1.0+das.dtk2504", "triton": "2.1.0+das.dtk2504"}
        public = self.work / "public"
        for project, version in versions.items():
            index.vendor_wheel(folder, project, version)
            index.vendor_wheel(public, project, "9.9.0")
        there = self.fresh(by, extra=(folder, public))
        there.install(*(f"{project}=={version}" for project, version in versions.items()))
        for words in (
            [f"clover-ops[{'hygon' if 'hygon' in self.backends else self.backends[-1]},torch,jit]"],
            ["--upgrade", "clover-ops[all,torch,jit]"],
        ):
            if "--upgrade" in words and by == "uv":
                words = ["--upgrade-package", "clover-ops", "clover-ops[all,torch,jit]"]
            there.install(*words)
            kept = {p: v for p, v in there.installed().items() if p in versions}
            expect(kept, versions)
        return ", ".join(f"{p} {v} kept" for p, v in versions.items())

    def run(self) -> None:
        for by in ("pip", "uv"):
            for extra in [*self.backends, "all"]:
                self.step(f"install clover-ops[{extra}] by {by}", self.extra, extra, by)
            self.step(f"every extra at once by {by}", self.every_extra, by)
        self.step("smoke test of installed wheels", self.smoke)
        for by in ("pip", "uv"):
            self.step(f"upgrade and downgrade by {by}", self.upgrade, by)
            self.step(f"mixed pair of versions by {by}", self.mixed_pair, by)
            self.step(f"a vendor's torch and triton under {by}", self.vendor, by)
        self.step("mixed pair, forced", self.forced_pair)
        for by in ("pip", "uv"):
            self.step(f"uninstall in every order by {by}", self.uninstall, by)


def expect(seen: object, wanted: object) -> None:
    if seen != wanted:
        raise env.Failure(f"expected {wanted}, found {seen}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("now", type=Path)
    parser.add_argument("following", type=Path)
    parser.add_argument("--dependencies", type=Path, default=ROOT / "build" / "release" / "dependencies")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    index.fill(arguments.dependencies)
    with tempfile.TemporaryDirectory(prefix="clover-rehearsal-") as folder:
        rehearsal = Rehearsal(
            load(),
            arguments.now.resolve(),
            arguments.following.resolve(),
            arguments.dependencies.resolve(),
            Path(folder),
        )
        failed = ""
        try:
            rehearsal.run()
        except env.Failure as failure:
            failed = str(failure)
        print(summary.rehearsal_table(rehearsal.rows))
        if arguments.json:
            summary.save(arguments.json, "rehearsal", {"rows": rehearsal.rows})
        if failed:
            print(f"FAILED {rehearsal.rows[-1]['step']}: {failed}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
