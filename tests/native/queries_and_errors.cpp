// What the registry answers, which errors a wrong call gives, and in what words.
#include <clover/ops.h>

#include <climits>
#include <cmath>
#include <cstring>

#include "check.hpp"
#include "json_reader.hpp"

namespace {

using clover::Device;
using clover::DType;
using clover::InvalidArgument;
using clover::Op;
using clover::TensorView;

// A DLTensor as DLPack's header declares it.
struct DeviceLike {
  int32_t device_type;
  int32_t device_id;
};
struct DTypeLike {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensorLike {
  void* data;
  DeviceLike device;
  int32_t ndim;
  DTypeLike dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

constexpr Op kAllOperators[] = {
#define OPERATOR(name) static_cast<Op>(CLOVER_OP_##name),
#include "operators.inc"
#undef OPERATOR
};

float a[12], b[12];
int32_t ids[4] = {0, 1, 2, 3};

}  // namespace

TEST(version_is_the_installed_one) {
  CHECK_EQUAL(clover::version(), std::string(EXPECTED_VERSION));
  CHECK_EQUAL(clover_abi_version(), uint32_t{CLOVER_ABI_VERSION});
}

TEST(the_cpu_backend_provides_and_supports_every_operator) {
  for (const Op op : kAllOperators) {
    CHECK(clover::provides(op, "cpu"));
    CHECK(clover::supports(op, Device{CLOVER_CPU, 0}));
    CHECK(!clover::supports(op, Device{CLOVER_CPU, 1}));
    CHECK(!clover::supports(op, Device{CLOVER_CPU, -1}));
    CHECK(!clover::supports(op, Device{INT_MAX, 0}));
    CHECK(!clover::supports(op, Device{INT_MIN, 0}));
  }
}

TEST(queries_refuse_what_they_do_not_know) {
  CHECK_THROWS(InvalidArgument, [] { clover::provides(Op::kCast, "abacus"); }, "no backend is called `abacus`", "cpu");
  CHECK_THROWS(InvalidArgument, [] { clover::provides(static_cast<Op>(0), "cpu"); }, "no operator has number 0");
  CHECK_THROWS(InvalidArgument, [] { clover::supports(static_cast<Op>(999), {}); }, "no operator has number 999");
}

TEST(warmup) {
  clover::warmup({});
  CHECK_THROWS(
      clover::Unsupported, [] { clover::warmup(Device{99, 3}); }, "warmup", "no active backend on device(99):3");
}

TEST(describe_is_json_that_says_what_is_installed) {
  const json::Value all = json::parse(clover::describe());
  CHECK_EQUAL(all["version"].text, std::string(EXPECTED_VERSION));
  CHECK_EQUAL(all["abi"].number, CLOVER_ABI_VERSION);
  const json::Value& cpu = all["plugins"].with("name", "cpu");
  CHECK_EQUAL(cpu["status"].text, std::string("active"));
  CHECK_EQUAL(cpu["reason"].text, std::string());
  CHECK_EQUAL(cpu["version"].text, std::string(EXPECTED_VERSION));
  CHECK(!cpu["toolchain"].text.empty());
  CHECK(!cpu["details"]["isa"].text.empty());
  CHECK_EQUAL(all["operators"].list.size(), sizeof(kAllOperators) / sizeof(kAllOperators[0]));
#define OPERATOR(op)                                                                            \
  {                                                                                             \
    const json::Value& entry = all["operators"].with("name", #op);                              \
    CHECK_EQUAL(entry["number"].number, CLOVER_OP_##op);                                        \
    CHECK_EQUAL(entry["providers"].with("backend", "cpu")["name"].text, std::string("native")); \
  }
#include "operators.inc"
#undef OPERATOR
}

TEST(each_status_is_an_exception_of_its_own) {
  CHECK_THROWS(clover::InvalidArgument, [] { clover::check(CLOVER_INVALID_ARGUMENT); });
  CHECK_THROWS(clover::Unsupported, [] { clover::check(CLOVER_UNSUPPORTED); });
  CHECK_THROWS(clover::MissingWorkspace, [] { clover::check(CLOVER_MISSING_WORKSPACE); });
  CHECK_THROWS(clover::DriverError, [] { clover::check(CLOVER_DRIVER_ERROR); });
  CHECK_THROWS(clover::CompileError, [] { clover::check(CLOVER_COMPILE_ERROR); });
  CHECK_THROWS(clover::AbiMismatch, [] { clover::check(CLOVER_ABI_MISMATCH); });
  CHECK_THROWS(clover::InternalError, [] { clover::check(CLOVER_INTERNAL); });
  clover::check(CLOVER_OK);
  try {
    clover::cast({}, TensorView(a, DType::kInt32, {12}), TensorView(b, DType::kFloat32, {12}));
    CHECK(false);
  } catch (const clover::Error& error) {  // one base for all of them
    CHECK_EQUAL(error.status(), CLOVER_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.what(), "cast: src");
  }
}

TEST(a_wrong_shape) {
  CHECK_THROWS(
      InvalidArgument,
      [] {
        clover::rms_norm_gated({}, TensorView(a, DType::kFloat32, {2, 2, 3}), TensorView(a, DType::kFloat32, {4}),
                               TensorView(a, DType::kFloat32, {2, 2, 3}), 1e-6,
                               TensorView(b, DType::kFloat32, {2, 2, 3}));
      },
      "rms_norm_gated: weight must have shape [V] with V = 3 (x), got [4]");
  CHECK_THROWS(
      InvalidArgument,
      [] { clover::cast({}, TensorView(a, DType::kFloat32, {12}), TensorView(b, DType::kFloat32, {3, 4})); },
      "cast: dst must have src's shape [12], got [3, 4]");
  CHECK_THROWS(
      InvalidArgument,
      [] {
        clover::rearrange({}, TensorView(a, DType::kFloat32, {1, 1, 1, 1, 1, 1, 1, 1, 12}),
                          TensorView(b, DType::kFloat32, {12}));
      },
      "rearrange: src must have at most 6 axes");
}

TEST(a_wrong_dtype) {
  CHECK_THROWS(
      InvalidArgument,
      [] { clover::rearrange({}, TensorView(a, DType::kFloat32, {6}), TensorView(b, DType::kInt32, {6})); },
      "rearrange: dst is int32 but src is float32");
  CHECK_THROWS(
      InvalidArgument,
      [] {
        clover::live_row_routes({}, TensorView(ids, DType::kInt64, {2, 1}), TensorView(a, DType::kFloat32, {2, 1}),
                                TensorView(a, DType::kBool, {2}), TensorView(b, DType::kInt32, {2, 1}),
                                TensorView(b + 2, DType::kFloat32, {2, 1}), TensorView(b + 4, DType::kInt32, {2}),
                                TensorView(b + 6, DType::kInt32, {1}));
      },
      "live_row_routes: ids must be int32, got int64");
}

TEST(wrong_strides) {
  CHECK_THROWS(
      InvalidArgument,
      [] {
        clover::topk_softmax({}, TensorView(a, DType::kFloat32, {2, 3}, {1, 2}), 1, false,
                             TensorView(ids, DType::kInt32, {2, 1}), TensorView(b, DType::kFloat32, {2, 1}));
      },
      "topk_softmax: logits must have unit stride in its last axis, got strides [1, 2]");
  CHECK_THROWS(
      InvalidArgument,
      [] {
        clover::rearrange({}, TensorView(a, DType::kFloat32, {2, 3}), TensorView(b, DType::kFloat32, {2, 3}, {0, 1}));
      },
      "rearrange: dst is written but overlaps itself");
}

TEST(no_data) {
  CHECK_THROWS(
      InvalidArgument,
      [] { clover::rearrange({}, TensorView(nullptr, DType::kFloat32, {2}), TensorView(b, DType::kFloat32, {2})); },
      "rearrange: src has elements but its data is null");
  clover::rearrange({}, TensorView(nullptr, DType::kFloat32, {0}), TensorView(nullptr, DType::kFloat32, {0}));
  CHECK_THROWS(
      InvalidArgument,
      [] {
        clover::rearrange({}, TensorView(reinterpret_cast<char*>(a) + 2, DType::kFloat32, {2}),
                          TensorView(b, DType::kFloat32, {2}));
      },
      "rearrange: src is not aligned to its elements of 4 bytes");
}

TEST(overlap) {
  CHECK_THROWS(
      InvalidArgument,
      [] { clover::rearrange({}, TensorView(a, DType::kFloat32, {6}), TensorView(a + 5, DType::kFloat32, {6})); },
      "rearrange: dst is written but overlaps src");
  // Even and odd elements of one array share a range but no memory.
  for (int i = 0; i < 12; ++i) a[i] = static_cast<float>(i);
  clover::rearrange({}, TensorView(a, DType::kFloat32, {6}, {2}), TensorView(a + 1, DType::kFloat32, {6}, {2}));
  CHECK_EQUAL(a[11], 10.0f);
}

TEST(two_devices) {
  CHECK_THROWS(
      InvalidArgument,
      [] {
        clover::rearrange({}, TensorView(a, DType::kFloat32, {6}),
                          TensorView(b, DType::kFloat32, {6}, Device{CLOVER_CUDA, 1}));
      },
      "rearrange: dst is on cuda:1 but src is on cpu; all tensors must share one device");
}

TEST(attributes_outside_their_domain) {
  const auto call = [](int64_t k) {
    clover::topk_softmax({}, TensorView(a, DType::kFloat32, {2, 3}), k, false, TensorView(ids, DType::kInt32, {2, k}),
                         TensorView(b, DType::kFloat32, {2, k}));
  };
  CHECK_THROWS(InvalidArgument, [&] { call(0); }, "topk_softmax: k must be at least 1, got 0");
  CHECK_THROWS(InvalidArgument, [&] { call(4); }, "topk_softmax: needs k <= E, got k = 4, E = 3");
  CHECK_THROWS(
      InvalidArgument,
      [] {
        clover::rms_norm_gated({}, TensorView(a, DType::kFloat32, {1, 1, 3}), TensorView(a, DType::kFloat32, {3}),
                               TensorView(a, DType::kFloat32, {1, 1, 3}), std::nan(""),
                               TensorView(b, DType::kFloat32, {1, 1, 3}));
      },
      "rms_norm_gated: eps must be finite, got nan");
}

TEST(index_values_outside_their_pool) {
  int32_t positions[2] = {0, 5};
  std::memset(b, 0x5A, sizeof(b));
  float before[12];
  std::memcpy(before, b, sizeof(b));
  CHECK_THROWS(
      InvalidArgument,
      [&] {
        clover::rotary_embedding(
            {}, TensorView(positions, DType::kInt32, {2}), TensorView(b, DType::kFloat32, {2, 1, 2}),
            TensorView(b + 4, DType::kFloat32, {2, 1, 2}), TensorView(a, DType::kFloat32, {5, 2}), false);
      },
      "rotary_embedding: positions[1] must be in [0, P) with P = 5, got 5");
  CHECK(std::memcmp(before, b, sizeof(b)) == 0);
}

TEST(a_device_without_a_backend) {
  CHECK_THROWS(
      clover::Unsupported,
      [] {
        clover::rearrange({}, TensorView(a, DType::kFloat32, {2}, Device{CLOVER_ROCM, 1}),
                          TensorView(b, DType::kFloat32, {2}, Device{CLOVER_ROCM, 1}));
      },
      "rearrange: no active backend provides it on rocm:1", "provided by: cpu (cpu)");
}

TEST(the_last_message_is_the_threads) {
  CHECK_THROWS(InvalidArgument, [] { clover::provides(Op::kCast, "abacus"); });
  CHECK_CONTAINS(clover_last_error(), "abacus");
  clover::warmup({});
  CHECK_EQUAL(std::string(clover_last_error()), std::string());
}

TEST(a_view_of_a_dl_tensor) {
  float memory[12];
  for (int i = 0; i < 12; ++i) memory[i] = static_cast<float>(i);
  int64_t shape[2] = {2, 3}, strides[2] = {4, 1};
  const DLTensorLike source{memory, {CLOVER_CPU, 0}, 2, {CLOVER_FLOAT, 32, 1}, shape, strides, sizeof(float)};
  float result[6];
  const DLTensorLike target{result, {CLOVER_CPU, 0}, 2, {CLOVER_FLOAT, 32, 1}, shape, nullptr, 0};
  clover::rearrange({}, TensorView(&source), TensorView(&target));
  CHECK_EQUAL(result[0], 1.0f);
  CHECK_EQUAL(result[3], 5.0f);
  CHECK_EQUAL(result[5], 7.0f);

  // A view keeps its own copy of shape and strides; so does a copy of the view.
  TensorView first(&source);
  const TensorView second(first);
  first = TensorView(result, DType::kFloat32, {6});
  shape[0] = strides[0] = 99;
  CHECK_EQUAL(second.size(0), 2);
  CHECK_EQUAL(second.rank(), 2);
  CHECK_EQUAL(second.abi()->strides[0], 4);
  CHECK_EQUAL(first.size(0), 6);
}

TEST(a_plugin_path_must_be_given) {
  CHECK_EQUAL(clover_load_plugin(nullptr), CLOVER_INVALID_ARGUMENT);
  CHECK_THROWS(
      clover::AbiMismatch, [] { clover::load_plugin("/nowhere/plugin.manifest"); }, "/nowhere/plugin.manifest",
      "cannot be read");
}
