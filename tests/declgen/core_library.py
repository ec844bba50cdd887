"""Asks the installed core library about manifests, in a process of its own: what it loads stays loaded."""

import json
import subprocess
import sys

from clover_ops import _core

_PROGRAM = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
library.clover_last_error.restype = ctypes.c_char_p
Sink = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_uint64)
errors = {}
for path in json.load(sys.stdin):
    status = library.clover_load_plugin(path.encode())
    errors[path] = [status, library.clover_last_error().decode(errors="replace")]
texts = []
assert library.clover_describe(Sink(lambda _, text, size: texts.append(text[:size])), None) == 0
json.dump({"errors": errors, "plugins": json.loads(texts[0])["plugins"]}, sys.stdout)
"""


def load_manifests(paths):
    """path -> (status, message), and path -> what describe() says of that plugin."""
    command = [sys.executable, "-c", _PROGRAM, str(_core.package_dir() / "lib/libclover_ops.so")]
    given = json.dumps([str(path) for path in paths])
    result = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    return answer["errors"], {plugin["manifest"]: plugin for plugin in answer["plugins"]}
