"""`child.py FILE NAME ARGUMENT...`: runs the body of one test of a file in this folder."""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    file, name, *arguments = sys.argv[1:]
    sys.path.insert(0, str(Path(file).parent.parent))
    module = import_module(f"driver.{Path(file).stem}")
    getattr(module, name).body(*arguments)
