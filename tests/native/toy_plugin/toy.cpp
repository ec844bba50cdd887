// The smallest backend: one provider of one operator, built from the installed headers alone. Its device is a pretended
// one of type TOY_DEVICE whose memory is the host's.
#include <atomic>
#include <clover/provider.hpp>
#include <cstdio>
#include <cstring>

namespace {

std::atomic<int> runs{0};

int64_t stride_of(const clover_tensor& tensor, int32_t axis) {
  if (tensor.strides != nullptr) return tensor.strides[axis];
  int64_t stride = 1;
  for (int32_t i = axis + 1; i < tensor.ndim; ++i) stride *= tensor.shape[i];
  return stride;
}

void copy_axis(const clover_tensor& src, const clover_tensor& dst, int32_t axis, const char* from, char* to) {
  const int64_t item = src.dtype.bits / 8;
  if (axis == src.ndim) {
    std::memcpy(to, from, static_cast<size_t>(item));
    return;
  }
  for (int64_t i = 0; i < src.shape[axis]; ++i)
    copy_axis(src, dst, axis + 1, from + i * stride_of(src, axis) * item, to + i * stride_of(dst, axis) * item);
}

int32_t run(const clover_call&, const clover_rearrange_args& args, const clover_rearrange_dims&) {
  ++runs;
  copy_axis(*args.src, *args.dst, 0, static_cast<const char*>(args.src->data) + args.src->byte_offset,
            static_cast<char*>(args.dst->data) + args.dst->byte_offset);
  return CLOVER_OK;
}

const char* describe() {
  static thread_local char text[32];
  std::snprintf(text, sizeof(text), "runs: %d\n", runs.load());
  return text;
}

int32_t device_count() {
  return 1;
}

}  // namespace

CLOVER_PROVIDER(rearrange, 0, "plain", nullptr, nullptr, run);

extern "C" const clover_plugin* clover_plugin_entry(void) {
  static const clover_provider* const providers[] = {&clover_provider_rearrange_0};
  static const clover_plugin plugin = [] {
    clover_plugin entry{};
    entry.struct_size = sizeof(entry);
    entry.abi_version = CLOVER_ABI_VERSION;
    entry.device_type = TOY_DEVICE;
    entry.name = "toy";
    entry.version = TOY_VERSION;
    entry.providers = providers;
    entry.provider_count = 1;
    entry.device_count = device_count;
    entry.describe = describe;
    return entry;
  }();
  return &plugin;
}
