// Overlap of strided tensors against looking at every byte, on random small layouts and on those that matter.
#include "overlap.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "check.hpp"

namespace {

struct Layout {
  std::vector<int64_t> shape, strides;
  int64_t offset;
  int item;

  clover_tensor tensor() const {
    clover_tensor t{};
    t.data = reinterpret_cast<void*>(uintptr_t{1} << 20);
    t.device_type = CLOVER_CPU;
    t.ndim = static_cast<int32_t>(shape.size());
    t.dtype = {CLOVER_UINT, static_cast<uint8_t>(8 * item), 1};
    t.shape = shape.data();
    t.strides = strides.data();
    t.byte_offset = static_cast<uint64_t>(offset);
    return t;
  }

  // Offsets of all elements, in bytes.
  std::vector<int64_t> elements() const {
    std::vector<int64_t> all{offset};
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      std::vector<int64_t> more;
      for (const int64_t base : all)
        for (int64_t i = 0; i < shape[axis]; ++i) more.push_back(base + i * strides[axis] * item);
      all.swap(more);
    }
    return all;
  }
};

std::set<int64_t> bytes_of(const Layout& layout) {
  std::set<int64_t> bytes;
  for (const int64_t element : layout.elements())
    for (int i = 0; i < layout.item; ++i) bytes.insert(element + i);
  return bytes;
}

Layout random_layout(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) { return low + static_cast<int64_t>(random() % (high - low + 1)); };
  Layout layout;
  layout.item = 1 << pick(0, 2);
  for (int64_t axes = pick(0, 4); axes > 0; --axes) {
    layout.shape.push_back(random() % 16 == 0 ? 0 : pick(1, 4));
    layout.strides.push_back(pick(-9, 9));
  }
  layout.offset = 400 + pick(0, 40) * layout.item;
  return layout;
}

Layout contiguous_columns(int64_t rows, int64_t row_stride, int64_t columns, int64_t first) {
  return {{rows, columns}, {row_stride, 1}, 4 * first, 4};
}

}  // namespace

TEST(random_pairs_agree_with_every_byte) {
  std::mt19937 random(1);
  int overlapping = 0;
  for (int i = 0; i < 20000; ++i) {
    const Layout a = random_layout(random), b = random_layout(random);
    const std::set<int64_t> in_a = bytes_of(a), in_b = bytes_of(b);
    const bool expected = std::any_of(in_a.begin(), in_a.end(), [&](int64_t byte) { return in_b.count(byte) != 0; });
    overlapping += expected;
    if (clover::may_overlap(a.tensor(), b.tensor()) != expected)
      check::equal(expected, !expected, "overlap of a random pair", __FILE__, i);
  }
  CHECK(overlapping > 2000 && overlapping < 18000);
}

TEST(random_tensors_overlap_themselves_as_every_byte_says) {
  std::mt19937 random(2);
  int overlapping = 0;
  for (int i = 0; i < 20000; ++i) {
    const Layout a = random_layout(random);
    const bool expected = bytes_of(a).size() != a.elements().size() * static_cast<size_t>(a.item);
    overlapping += expected;
    if (clover::may_overlap_itself(a.tensor()) != expected)
      check::equal(expected, !expected, "overlap of a random tensor with itself", __FILE__, i);
  }
  CHECK(overlapping > 2000 && overlapping < 18000);
}

TEST(slices_of_one_projection) {
  const Layout q = contiguous_columns(8192, 6144, 2048, 0), k = contiguous_columns(8192, 6144, 2048, 2048);
  CHECK(!clover::may_overlap(q.tensor(), k.tensor()));
  const Layout wide = contiguous_columns(8192, 6144, 2049, 0);
  CHECK(clover::may_overlap(wide.tensor(), k.tensor()));
  CHECK(!clover::may_overlap_itself(wide.tensor()));
  const Layout too_wide = contiguous_columns(8192, 6144, 6145, 0);
  CHECK(clover::may_overlap_itself(too_wide.tensor()));
}

TEST(absurd_layouts_are_answered_at_once) {
  const int64_t huge = int64_t{1} << 62;
  const Layout far{{2, 2}, {huge, 1}, 0, 4}, near{{2}, {1}, 0, 4};
  clover::ByteRange range;
  CHECK(!clover::byte_range(far.tensor(), &range));
  CHECK(clover::may_overlap(far.tensor(), near.tensor()));
  // No nesting anywhere: a search without a limit would take for ever.
  const Layout contrived{{999, 997, 991, 983, 977, 971}, {1009, 1013, 1019, 1021, 1031, 1033}, 0, 4};
  CHECK(clover::may_overlap_itself(contrived.tensor()));
}
