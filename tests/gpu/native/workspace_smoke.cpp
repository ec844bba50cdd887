// gated_delta_rule from C++ on a GPU: with a right, short, misaligned and missing workspace, and by a Triton kernel out
// of the bundle. Results are compared with the CPU backend's. There is no Python in this program.
#include "device.hpp"

namespace {

using gpu::Commit;
using gpu::require;

void require_refused(const Commit& call, void* workspace, uint64_t bytes, clover::Device on, const char* what) {
  try {
    call.run({nullptr, workspace, bytes, CLOVER_ANY_SLOT}, on);
  } catch (const clover::MissingWorkspace& error) {
    std::printf("%s workspace refused: %s\n", what, error.what());
    return;
  }
  require(false, std::string("a ") + what + " workspace was accepted");
}

// Runs the call by a slot on the device, and on the CPU; the CPU's state is in the call afterwards.
void compare(Commit* call, int32_t slot, clover::Device device, const gpu::Memory& memory, double o_bound,
             double state_bound) {
  for (gpu::Array* array : call->all()) place(memory, array);
  const uint64_t bytes = call->workspace_bytes({nullptr, nullptr, 0, slot}, device);
  char* workspace = static_cast<char*>(memory.allocate(bytes + 256));
  std::printf("slot %d: %llu bytes of workspace\n", slot, static_cast<unsigned long long>(bytes));
  if (bytes > 0 && slot == CLOVER_ANY_SLOT) {
    require_refused(*call, nullptr, 0, device, "missing");
    require_refused(*call, workspace, bytes - 1, device, "short");
    require_refused(*call, workspace + 4, bytes, device, "misaligned");
  }
  call->run({nullptr, workspace, bytes, slot}, device);
  const gpu::Array o = fetched(memory, call->o), state = fetched(memory, call->state);

  clover::Handle handle;
  std::vector<char> scratch;
  gpu::set_scratch(&scratch, &handle, call->workspace_bytes({}, {}));
  call->run(handle, {});
  const double difference = greatest_difference(o, call->o), state_difference = greatest_difference(state, call->state);
  std::printf("greatest difference from the CPU: output %g, state %g\n", difference, state_difference);
  require(difference <= o_bound && state_difference <= state_bound, "the results differ");
}

}  // namespace

int main(int count, char** arguments) {
  const clover::Device device = gpu::device_of(count, arguments);
  const gpu::Memory memory(device.type == CLOVER_ROCM);
  Commit plain(clover::DType::kFloat32, 2, 4, 64, 64, {0, 9, 40}, {2, 0});
  compare(&plain, CLOVER_ANY_SLOT, device, memory, 1e-4, 1e-4);
  // The bundled geometry; outputs are BF16.
  Commit prompt(clover::DType::kBFloat16, 16, 32, 128, 128, {0, 200}, {0});
  try {
    compare(&prompt, 10, device, memory, 0.02, 1e-4);
  } catch (const clover::CompileError& error) {
    // The wheel has it for every NVIDIA card that it supports, but not for every DCU.
    require(device.type == CLOVER_ROCM, error.what());
    std::printf("the Triton kernel was not run: %s\n", error.what());
  }
  std::printf("ok\n");
}
