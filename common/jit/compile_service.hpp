// CLOVER_OPS_JIT, and what is asked of `python -m clover_ops.jit` in a child process: to compile a kernel, and which
// Triton there is.
#pragma once

#include <string>

namespace clover::jit {

enum class Mode { kOff, kBundle, kOn };

// CLOVER_OPS_JIT: off, bundle or on (the default); throws on any other value.
Mode mode();

// The interpreter to run where CLOVER_OPS_PYTHON names none: the one that this program lives in. Where
// that is empty too, python3.
void set_python(const std::string& path);

// An artifact's bytes, made by `-m clover_ops.jit compile` from a request's text and the kernels' sources in `kernels`.
// Throws CLOVER_COMPILE_ERROR with the reason that the child gave. Nothing in them is checked here.
std::string compile(const std::string& request, const std::string& kernels);

// The lines that tell this Triton from others in an artifact's identity. Throws CLOVER_COMPILE_ERROR where there is
// none.
std::string toolchain();

}  // namespace clover::jit
