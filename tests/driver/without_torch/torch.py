"""First on the path of child processes: tvm_ffi imports torch where there is one, which takes seconds and looks for a driver
of its own."""

raise ModuleNotFoundError("torch is left out here", name="torch")
