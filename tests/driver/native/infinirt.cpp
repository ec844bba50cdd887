// A program that has InfiniRT and runs Clover through its driver interface. InfiniRT here is a stand-in with that
// interface: names, argument order and constants as its users call them, and types of its own.
#include <clover/interop/infinirt.h>
#include <clover/ops.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace infini::rt {

struct Device {
  enum class Type { kCpu, kNvidia };
};

namespace driver {

template <Device::Type>
class Driver;

template <>
class Driver<Device::Type::kNvidia> {
 public:
  struct ModuleImpl;
  struct FunctionImpl;
  struct StreamImpl;
  using Module = ModuleImpl*;
  using Function = FunctionImpl*;
  using Stream = StreamImpl*;
  enum class Result { kDone, kFailed = 999 };
  enum class FunctionAttribute { kShared = 1, kDynamicShared = 8 };
  enum class CacheConfig { kNone, kShared };
  static constexpr Result kSuccess = Result::kDone;
  static constexpr FunctionAttribute kFuncAttributeSharedSizeBytes = FunctionAttribute::kShared;
  static constexpr FunctionAttribute kFuncAttributeMaxDynamicSharedSizeBytes = FunctionAttribute::kDynamicShared;
  static constexpr CacheConfig kFuncCachePreferShared = CacheConfig::kShared;

  static inline int loads = 0, lookups = 0, opt_ins = 0, launches = 0;
  static inline bool broken = false;

  static Result ModuleLoadData(Module* module, const void* image) {
    if (broken) return Result::kFailed;
    ++loads;
    return result(vendor().ModuleLoadData(reinterpret_cast<void**>(module), image));
  }
  static Result ModuleUnload(Module module) { return result(vendor().ModuleUnload(module)); }
  static Result ModuleGetFunction(Function* function, Module module, const char* name) {
    ++lookups;
    return result(vendor().ModuleGetFunction(reinterpret_cast<void**>(function), module, name));
  }
  static Result FuncGetAttribute(int* value, FunctionAttribute attribute, Function function) {
    return result(vendor().FuncGetAttribute(value, static_cast<int>(attribute), function));
  }
  static Result FuncSetAttribute(Function function, FunctionAttribute attribute, int value) {
    ++opt_ins;
    return result(vendor().FuncSetAttribute(function, static_cast<int>(attribute), value));
  }
  static Result FuncSetCacheConfig(Function function, CacheConfig config) {
    return result(vendor().FuncSetCacheConfig(function, static_cast<int>(config)));
  }
  static Result LaunchKernel(Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared_bytes, Stream stream, void** arguments, void** extra) {
    ++launches;
    return result(vendor().LaunchKernel(function, gx, gy, gz, bx, by, bz, shared_bytes, stream, arguments, extra));
  }

 private:
  static const clover::driver::Table& vendor() {
    using Vendor = clover::driver::Driver<CLOVER_CUDA>;
    Vendor::Open();
    return Vendor::table();
  }
  static Result result(int status) { return static_cast<Result>(status); }
};

}  // namespace driver
}  // namespace infini::rt

using Infini = infini::rt::driver::Driver<infini::rt::Device::Type::kNvidia>;

namespace {

void route() {
  std::vector<float> logits(4 * 16), weights(4 * 2);
  std::vector<int32_t> ids(4 * 2);
  const clover::Device device{CLOVER_CUDA, 0};
  const clover::TensorView l(logits.data(), clover::DType::kFloat32, {4, 16}, device);
  const clover::TensorView i(ids.data(), clover::DType::kInt32, {4, 2}, device);
  const clover::TensorView w(weights.data(), clover::DType::kFloat32, {4, 2}, device);
  clover_topk_softmax_args args{};
  args.struct_size = sizeof(args);
  args.given = 1;
  args.logits = l.abi();
  args.ids = i.abi();
  args.weights = w.abi();
  args.k = 2;
  clover::check(clover_topk_softmax(nullptr, &args));
}

int fail(const char* what) {
  std::printf("%s\n", what);
  return 1;
}

}  // namespace

int main() {
  try {
    clover::interop::use_infinirt<Infini>("hygon");
    return fail("a backend that is not active must be refused");
  } catch (const clover::Unsupported&) {
  }
  clover::interop::use_infinirt<Infini>("nvidia");
  Infini::broken = true;
  try {
    route();
    return fail("a failing load must be reported");
  } catch (const clover::DriverError& error) {
    if (std::strstr(error.what(), "cuModuleLoadData failed") == nullptr) return fail(error.what());
  }
  Infini::broken = false;
  route();
  if (Infini::loads != 1 || Infini::launches != 1) return fail("one load and one launch must go through InfiniRT");
  if (Infini::lookups < 1 || Infini::lookups != Infini::opt_ins)
    return fail("each kernel must be looked up and opted in");
  try {
    clover::interop::use_infinirt<Infini>("nvidia");
    return fail("a driver must not change once kernels are loaded");
  } catch (const clover::InvalidArgument&) {
  }
  std::printf("ok\n");
}
