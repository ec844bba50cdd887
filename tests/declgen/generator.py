"""The generator, loaded from the source tree under a name that no installed package has."""

import importlib
import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_NAME = "declgen_under_test"


def _load():
    folder = ROOT / "common/declgen"
    spec = importlib.util.spec_from_file_location(
        _NAME, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = module
    spec.loader.exec_module(module)


_load()
main = importlib.import_module(f"{_NAME}.__main__")
model = importlib.import_module(f"{_NAME}.model")
expr = importlib.import_module(f"{_NAME}.expr")
emit_plugin = importlib.import_module(f"{_NAME}.emit_plugin")
emit_docs = importlib.import_module(f"{_NAME}.emit_docs")

GENERATED = main.generated(model.load(main.SCHEMA))
"""Every generated file of the real schema: path -> text."""
