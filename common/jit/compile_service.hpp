// CLOVER_OPS_JIT, and compiling a kernel in a child process.
#pragma once

#include <string>

namespace clover::jit {

enum class Mode { kOff, kBundle, kOn };

// CLOVER_OPS_JIT: off, bundle or on (the default); throws on any other value.
Mode mode();

// An artifact's bytes, made by `$CLOVER_OPS_PYTHON -m clover_ops.jit compile` from a request's text and the kernels'
// sources in `kernels`. Throws CLOVER_COMPILE_ERROR with the reason that the child gave. Nothing in them is checked
// here.
std::string compile(const std::string& request, const std::string& kernels);

}  // namespace clover::jit
