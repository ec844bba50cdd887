// One call of one operator with small inputs of its own: run it, check what it wrote against the reference, look at
// what it must not have touched.
#pragma once

#include <clover/ops.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tensor.hpp"

namespace operators {

using clover::Handle;
using Shape = std::vector<int64_t>;

class Case {
 public:
  explicit Case(DType x_type, Device device = {}) : X(x_type), device_(device) {}
  virtual ~Case() = default;
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  virtual const char* name() const = 0;
  virtual uint32_t number() const = 0;
  virtual void run(const Handle& handle) = 0;
  // Checks outputs and in/out arguments against the reference on what save() last saw.
  virtual void verify() = 0;

  virtual bool takes_workspace() const { return false; }
  virtual uint64_t workspace_size(const Handle&) { return 0; }
  // Gives index and mask tensors other values of the same shape.
  virtual void change_index_values() {}

  // What is in every tensor now is what verify(), restore() and unchanged() compare with and go back to.
  void save();
  void restore();
  bool unchanged() const;
  void check_surroundings() const;           // inputs keep their bits, guards are whole
  std::vector<std::string> results() const;  // bits of all that is written
  void hide_data(bool hide);

 protected:
  Tensor& input(DType dtype, const Shape& shape) { return add(dtype, shape, false); }
  Tensor& output(DType dtype, const Shape& shape) { return add(dtype, shape, true); }
  Tensor& in_out(DType dtype, const Shape& shape) { return add(dtype, shape, true); }
  // An input with values in [low, high).
  Tensor& random(DType dtype, const Shape& shape, double low = -1, double high = 1);
  Tensor& indices(std::initializer_list<double> values);

  const DType X;

 private:
  struct Owned {
    Tensor tensor;
    bool written;
  };
  Tensor& add(DType dtype, const Shape& shape, bool written);

  Device device_;
  std::deque<Owned> tensors_;
};

// The error that docs/operators.md allows, relative to the L2 norm; twice as much, for outputs this small.
struct Bound {
  double bfloat16, float16, float32;
};
constexpr Bound kPlain{2.5e-3, 5e-4, 2e-6};
constexpr Bound kDelta{2.5e-3, 5e-4, 2e-5};
constexpr Bound kExperts{4e-3, 1e-3, 2e-6};
constexpr Bound kLayer{4e-3, 1e-3, 2e-5};

// The tensor's first elements are close to `expected`; those beyond are as they were before the call.
void check_close(const Tensor& actual, const std::vector<double>& expected, const Bound& bound);
// The same, bit for bit, of values that the tensor's dtype can hold.
void check_equal(const Tensor& actual, const std::vector<double>& expected);

using CasePointer = std::unique_ptr<Case>;

// All operators, in the order of their numbers; some have several cases.
std::vector<CasePointer> all_cases(DType x_type, Device device = {});

void add_convolution_cases(DType x_type, Device device, std::vector<CasePointer>* cases);
void add_delta_cases(DType x_type, Device device, std::vector<CasePointer>* cases);
void add_routing_cases(DType x_type, Device device, std::vector<CasePointer>* cases);
void add_expert_cases(DType x_type, Device device, std::vector<CasePointer>* cases);
void add_layout_cases(DType x_type, Device device, std::vector<CasePointer>* cases);

// What every case says of itself.
#define OPERATOR_CASE(op_name)        \
  using Case::Case;                   \
  const char* name() const override { \
    return #op_name;                  \
  }                                   \
  uint32_t number() const override {  \
    return CLOVER_OP_##op_name;       \
  }

}  // namespace operators
