#include "index_values.hpp"

#include <algorithm>
#include <climits>
#include <string>
#include <vector>

#include "error.hpp"
#include "overlap.hpp"
#include "tensor_text.hpp"

namespace clover {
namespace {

// An int32 index tensor on the host, read through its strides.
struct Indices {
  const TensorSpec* spec = nullptr;
  const int32_t* data = nullptr;
  int64_t rows = 0, columns = 1;
  int64_t row_stride = 1, column_stride = 1;

  int32_t operator()(int64_t row, int64_t column = 0) const { return data[row * row_stride + column * column_stride]; }
};

class IndexChecker {
 public:
  IndexChecker(const Call& call, const HostReader* reader) : call_(call), reader_(reader) {}

  void run() {
    for (const TensorSpec& spec : call_.op->tensors) {
      if (spec.values == Values::kNone || call_.tensor(spec) == nullptr) continue;
      const Indices indices = fetch(spec);
      switch (spec.values) {
        case Values::kCuSeqlens:
          check_cu_seqlens(indices);
          break;
        case Values::kInitialSlots:
          check_below(indices, INT_MIN, "negative (no slot) or ");
          initial_ = indices;
          break;
        case Values::kFinalSlots:
          check_below(indices, INT_MIN, "negative (no slot) or ");
          final_ = indices;
          break;
        case Values::kExperts:
          check_below(indices, -1, "-1 (skipped) or ");
          break;
        case Values::kPositions:
          check_below(indices, 0, "");
          break;
        case Values::kNone:
          break;
      }
    }
    if (final_.spec != nullptr) check_slot_conflicts();
  }

 private:
  [[noreturn]] void refuse(const Indices& indices, int64_t row, int64_t column, const std::string& must) const {
    std::string element = indices.spec->name + ("[" + std::to_string(row));
    if (indices.spec->rank == 2) element += ", " + std::to_string(column);
    throw Error(CLOVER_INVALID_ARGUMENT, std::string(call_.op->name) + ": " + element + "] must be " + must + ", got " +
                                             std::to_string(indices(row, column)));
  }

  Indices fetch(const TensorSpec& spec) const {
    const clover_tensor& t = *call_.tensor(spec);
    Indices indices;
    indices.spec = &spec;
    if (is_empty(t)) return indices;
    indices.rows = t.shape[0];
    indices.row_stride = stride_of(t, 0);
    if (t.ndim == 2) {
      indices.columns = t.shape[1];
      indices.column_stride = stride_of(t, 1);
    }
    const uintptr_t address = reinterpret_cast<uintptr_t>(t.data) + t.byte_offset;
    if (reader_ == nullptr) {
      indices.data = reinterpret_cast<const int32_t*>(address);
    } else {
      ByteRange range;
      byte_range(t, &range);
      const char* host = static_cast<const char*>((*reader_)(range.first, range.end));
      indices.data = reinterpret_cast<const int32_t*>(host + (address - range.first));
    }
    return indices;
  }

  // cu_seqlens always has an element: its size is N + 1.
  void check_cu_seqlens(const Indices& indices) {
    cu_seqlens_ = indices;
    const int64_t tokens = call_.dims[0];  // the schema's first symbol of every packed operator is T
    if (indices(0) != 0) refuse(indices, 0, 0, "0");
    for (int64_t i = 1; i < indices.rows; ++i)
      if (indices(i) < indices(i - 1))
        refuse(indices, i, 0, "at least " + std::to_string(indices(i - 1)) + ", the end of the sequence before");
    if (indices(indices.rows - 1) > tokens)
      refuse(indices, indices.rows - 1, 0, "at most T = " + std::to_string(tokens));
  }

  void check_below(const Indices& indices, int64_t lowest, const char* otherwise) const {
    int64_t limit = INT64_MAX;
    const char* symbol = "";
    for (const int16_t pool : indices.spec->pools) {
      if (pool < 0 || call_.dims[pool] >= limit) continue;
      limit = call_.dims[pool];
      symbol = call_.op->symbols[pool];
    }
    for (int64_t row = 0; row < indices.rows; ++row)
      for (int64_t column = 0; column < indices.columns; ++column) {
        const int64_t value = indices(row, column);
        if (value >= lowest && value < limit) continue;
        refuse(indices, row, column,
               std::string(otherwise) + "in [0, " + symbol + ") with " + symbol + " = " + std::to_string(limit));
      }
  }

  // A slot that one sequence writes may be read or written by no other. An empty sequence whose two slots are the same
  // touches nothing; with different ones it copies.
  void check_slot_conflicts() const {
    struct Use {
      int32_t slot;
      bool write;
      int64_t sequence;
      bool operator<(const Use& other) const {
        return slot != other.slot ? slot < other.slot : write != other.write ? write : sequence < other.sequence;
      }
    };
    constexpr int64_t kInline = 256;
    Use inline_uses[2 * kInline];
    std::vector<Use> many;
    Use* uses = inline_uses;
    if (final_.rows > kInline) {
      many.resize(2 * final_.rows);
      uses = many.data();
    }
    int64_t count = 0;
    for (int64_t i = 0; i < final_.rows; ++i) {
      const bool empty = cu_seqlens_(i + 1) == cu_seqlens_(i);
      if (empty && (initial_(i) == final_(i) || final_(i) < 0)) continue;
      if (initial_(i) >= 0) uses[count++] = {initial_(i), false, i};
      if (final_(i) >= 0) uses[count++] = {final_(i), true, i};
    }
    std::sort(uses, uses + count);
    for (int64_t i = 1, group = 0; i < count; ++i) {
      if (uses[i].slot != uses[group].slot) group = i;
      if (i == group || !uses[group].write || uses[i].sequence == uses[group].sequence) continue;
      throw Error(CLOVER_INVALID_ARGUMENT,
                  std::string(call_.op->name) + ": slot " + std::to_string(uses[i].slot) + " is written by sequence " +
                      std::to_string(uses[group].sequence) + " and " + (uses[i].write ? "written" : "read") +
                      " by sequence " + std::to_string(uses[i].sequence) + "; a written slot belongs to one sequence");
    }
  }

  const Call& call_;
  const HostReader* reader_;
  Indices cu_seqlens_, initial_, final_;
};

}  // namespace

void check_index_values(const Call& call, const HostReader* reader) {
  IndexChecker(call, reader).run();
}

}  // namespace clover
