"""Versions are compared as PEP 440 does, `packaging` being the judge."""

import random
import shutil
import subprocess
from functools import cache

import pytest
from packaging.version import InvalidVersion, Version

from .core_library import load_manifests
from .generator import ROOT

pytestmark = pytest.mark.smoke

SAME = [
    ("1.0", "1.0.0"), ("1.0", "v1.0"), ("1.0", "1"), ("1.0rc1", "1.0.RC-1"), ("1.0rc1", "1.0-c1"), ("1.0rc1", "1.0preview_1"),
    ("1.0a0", "1.0alpha"), ("1.0b2", "1.0_BETA.2"), ("1.0.post1", "1.0-1"), ("1.0.post1", "1.0rev1"), ("1.0.post0", "1.0-r"),
    ("1.0.dev0", "1.0DEV"), ("1.0", "1.0+local.7"), ("0!1.0", "1.0"), ("1.02.0", "1.2"), (" 1.0 ", "1.0"), ("1.0a01", "1.0a1"),
]  # fmt: skip
DIFFERENT = [
    ("1.0", "1.1"), ("1.0", "1.0.1"), ("1.0", "1.0rc1"), ("1.0rc1", "1.0rc2"), ("1.0a1", "1.0b1"), ("1.0", "1!1.0"),
    ("1.0", "1.0.post0"), ("1.0", "1.0.dev0"), ("1.0.post1.dev2", "1.0.post1"), ("1.0", "10"), ("1.0", ""), ("1.0", "1.0x"),
    ("1.0", "1..0"), ("1.0", "1.0.*"), ("1.0", "1,0"), ("1.0.dev1", "1.0.dev10"), ("1.0", "1.0+"),
]  # fmt: skip


@pytest.fixture(scope="module")
def canonical(tmp_path_factory):
    """canonical(texts): canonical_version() of each, by a small program around version.cpp."""
    if shutil.which("g++") is None:
        pytest.skip("no g++ on this machine")
    folder = tmp_path_factory.mktemp("version")
    (folder / "main.cpp").write_text(
        '#include <iostream>\n#include "version.hpp"\n'
        "int main() { for (std::string text; std::getline(std::cin, text, '\\0');)\n"
        "  std::cout << clover::canonical_version(text) << '\\0'; }\n"
    )
    source = ROOT / "common/src"
    command = ["g++", "-std=c++17", "-O0", f"-I{source}", "main.cpp", source / "version.cpp"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)

    def run(texts):
        given = "".join(text + "\0" for text in texts).encode()
        result = subprocess.run([folder / "a.out"], input=given, capture_output=True, check=True, timeout=120)
        return result.stdout.decode().split("\0")[:-1]

    return run


@pytest.mark.parametrize("pairs, equal", [(SAME, True), (DIFFERENT, False)], ids=["same", "different"])
def test_known_pairs(canonical, pairs, equal):
    left, right = canonical([a for a, _ in pairs]), canonical([b for _, b in pairs])
    wrong = [pair for pair, a, b in zip(pairs, left, right) if (a == b) != equal]
    assert not wrong


def _random_version(rng):
    number = lambda: rng.choice(["0", "1", "2", "00", "01", "10", "007"])  # noqa: E731
    separator = lambda: rng.choice(["", "", ".", "-", "_"])  # noqa: E731
    case = lambda word: rng.choice([word, word.upper(), word.capitalize()])  # noqa: E731
    text = rng.choice(["", "", "", "v", "V"])
    if rng.random() < 0.15:
        text += number() + "!"
    text += ".".join(number() for _ in range(rng.randrange(1, 4)))
    if rng.random() < 0.4:
        word = rng.choice(["a", "alpha", "b", "beta", "c", "rc", "pre", "preview"])
        text += separator() + case(word) + (separator() + number() if rng.random() < 0.7 else "")
    if rng.random() < 0.3:
        if rng.random() < 0.3:
            text += "-" + number()
        else:
            word = rng.choice(["post", "rev", "r"])
            text += separator() + case(word) + (separator() + number() if rng.random() < 0.7 else "")
    if rng.random() < 0.3:
        text += separator() + case("dev") + (separator() + number() if rng.random() < 0.7 else "")
    if rng.random() < 0.15:
        text += "+" + rng.choice(["abc", "1", "a.b", "a-1_C"])
    if rng.random() < 0.2:  # often no version any more
        position = rng.randrange(len(text) + 1)
        text = text[:position] + rng.choice(" .-_+!xvrc0*\t\n") + text[position + rng.randrange(2) :]
    return text


@cache
def _judged(text):
    try:
        return Version(Version(text).public)
    except InvalidVersion:
        return text  # equal to itself alone


def test_random_pairs(canonical):
    rng = random.Random(5)
    texts = [_random_version(rng) for _ in range(6000)]
    answers = canonical(texts)
    assert len(answers) == len(texts)
    judged, ours = {}, {}
    for text, answer in zip(texts, answers):
        verdict = _judged(text)
        assert ours.setdefault(answer, verdict) == verdict, f"{text!r} became {answer!r}, as another version does"
        assert judged.setdefault(verdict, answer) == answer, f"{text!r} became {answer!r}, not {judged[verdict]!r}"
        if isinstance(verdict, Version):
            assert _judged(answer) == verdict, f"{text!r} became {answer!r}"
        else:
            assert answer == text
    assert 500 < len(judged) < 5000
    assert sum(isinstance(verdict, str) for verdict in judged) > 100


def test_a_very_long_text_does_no_harm(canonical):
    for text in ("1" * 300_000, "1." * 100_000 + "0", "v" + "0" * 300_000, "1.0+" + "a" * 300_000, " " * 300_000):
        assert canonical([text]) == [text]


def test_the_registry_compares_so(tmp_path):
    """Through manifests: another version is refused with both named; the same is not, and fails later, at the library."""
    import clover_ops

    core = clover_ops.__version__
    versions = [core, f"v{core}", f"{core}.0", f" {core}", f"{core}+local", f"{core}.post1", f"{core}rc1", f"1!{core}", "9",
                "nonsense", "x" * 100_000]  # fmt: skip
    paths = []
    for i, version in enumerate(versions):
        paths.append(tmp_path / f"{i}.manifest")
        paths[-1].write_text(
            f"clover-plugin 1\nname toy{i}\nversion {version}\nabi 1\nlibrary absent.so\ndevice cpu\nprobe always\n"
        )
    errors, _ = load_manifests(paths)
    for path, version in zip(paths, versions):
        status, message = errors[str(path)]
        assert status == 6  # CLOVER_ABI_MISMATCH
        if _judged(version) == _judged(core):
            assert "absent.so" in message
        else:
            assert f"plugin version {version}"[:200] in message
            if len(version) < 100:
                assert f"core version {core}; both must be the same" in message
