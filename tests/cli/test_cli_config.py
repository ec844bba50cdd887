"""The paths that a C++ build is given exist and hold what they promise."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest


@pytest.mark.smoke
def test_cmakedir_holds_the_package(cli):
    result = cli("config", "--cmakedir")
    assert result.returncode == 0, result.stderr
    assert (Path(result.stdout.strip()) / "CloverOpsConfig.cmake").is_file()


def test_includes_hold_the_public_header(cli):
    result = cli("config", "--includes")
    assert result.returncode == 0, result.stderr
    assert (Path(result.stdout.strip()) / "clover" / "ops.h").is_file()


def test_libs_are_linker_flags(cli):
    result = cli("config", "--libs")
    assert result.returncode == 0, result.stderr
    directory, library = shlex.split(result.stdout)
    assert library == "-lclover_ops"
    assert directory.startswith("-L")
    assert (Path(directory[2:]) / "libclover_ops.so").is_file()


def test_without_an_option_all_are_named(cli):
    result = cli("config")
    assert result.returncode == 0, result.stderr
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == ["cmakedir", "includes", "libs"]


def test_an_incomplete_installation_is_named(cli, package_copy):
    package, root = package_copy
    header_directory = package / "include"
    header_directory.rename(package / "elsewhere")
    result = cli("config", "--includes", path=root)
    assert result.returncode == 1
    assert str(header_directory) in result.stderr
