// rearrange and cast: any strided tensor into any other of its shape.
#include "../support/number.hpp"
#include "../support/parallel.hpp"
#include "../support/variant.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {
namespace {

constexpr int kMaxAxes = 6;

struct Axis {
  int64_t size;
  int64_t from;  // stride in src, in elements
  int64_t to;    // stride in dst
};

inline int64_t magnitude(int64_t value) {
  return value < 0 ? -value : value;
}

// A row of a copy: `count` elements, each side with its stride.
using CopyRow = void (*)(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t count);

template <class T>
void copy_row(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t count) {
  const T* source = static_cast<const T*>(from);
  T* target = static_cast<T*>(to);
  if (from_stride == 1 && to_stride == 1) {
    __builtin_memcpy(target, source, static_cast<size_t>(count) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; ++i) target[i * to_stride] = source[i * from_stride];
}

template <class From, class To>
void cast_row(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t count) {
  const From* source = static_cast<const From*>(from);
  To* target = static_cast<To*>(to);
  if (from_stride == 1 && to_stride == 1) {
    for (int64_t i = 0; i < count; i += kLanes) {
      store_part(target + i, count - i, load_part(source + i, count - i));
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) target[i * to_stride] = from_float<To>(to_float(source[i * from_stride]));
}

// The axes of a copy, the one that is densest in dst last, neighbours joined wherever both sides run through them in
// one stride. Returns how many; 0 when there is nothing to copy.
int plan_axes(const clover_tensor& src, const clover_tensor& dst, Axis (&axes)[kMaxAxes]) {
  int64_t from[kMaxAxes], to[kMaxAxes];
  strides_of(src, from);
  strides_of(dst, to);
  int count = 0;
  for (int axis = 0; axis < src.ndim; ++axis) {
    if (src.shape[axis] == 0) return 0;
    if (src.shape[axis] == 1) continue;
    int place = count++;
    for (; place > 0 && magnitude(axes[place - 1].to) < magnitude(to[axis]); --place) axes[place] = axes[place - 1];
    axes[place] = {src.shape[axis], from[axis], to[axis]};
  }
  if (count == 0) axes[count++] = {1, 1, 1};

  int last = 0;
  for (int axis = 1; axis < count; ++axis) {
    Axis& outer = axes[last];
    const Axis& inner = axes[axis];
    if (outer.from == inner.from * inner.size && outer.to == inner.to * inner.size) {
      outer = {outer.size * inner.size, inner.from, inner.to};
    } else {
      axes[++last] = inner;
    }
  }
  return last + 1;
}

// Copies tile by tile. A tile is a piece of the last axis and of the one among the others that is densest in src, so
// that a transposition touches each cache line of either side only while it is at hand.
void copy(const clover_tensor& src, const clover_tensor& dst, int64_t from_bytes, int64_t to_bytes, CopyRow row) {
  Axis axes[kMaxAxes];
  int count = plan_axes(src, dst, axes);
  if (count == 0) return;
  const Axis columns = axes[--count];
  Axis rows{1, 0, 0};
  if (count > 0) {
    int densest = count - 1;
    for (int axis = count - 2; axis >= 0; --axis) {
      if (magnitude(axes[axis].from) < magnitude(axes[densest].from)) densest = axis;
    }
    rows = axes[densest];
    for (int axis = densest; axis + 1 < count; ++axis) axes[axis] = axes[axis + 1];
    --count;
  }

  const bool straight = magnitude(columns.from) <= magnitude(rows.from) || rows.size == 1;
  const int64_t tile_columns = straight ? 4096 : 64;
  const int64_t tile_rows = straight ? maximum(1, 4096 / columns.size) : 64;
  const int64_t tiles_across = divide_up(columns.size, tile_columns);
  const int64_t tiles_down = divide_up(rows.size, tile_rows);
  int64_t tiles = tiles_across * tiles_down;
  for (int axis = 0; axis < count; ++axis) tiles *= axes[axis].size;
  const char* source = data_of<const char>(src);
  char* target = data_of<char>(dst);

  const int64_t work = minimum(tile_columns, columns.size) * minimum(tile_rows, rows.size);
  parallel_for(tiles, work, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      int64_t rest = tile;
      const int64_t column = rest % tiles_across * tile_columns;
      rest /= tiles_across;
      const int64_t row_begin = rest % tiles_down * tile_rows;
      rest /= tiles_down;
      int64_t from = column * columns.from;
      int64_t to = column * columns.to;
      for (int axis = count - 1; axis >= 0; --axis) {
        const int64_t index = rest % axes[axis].size;
        rest /= axes[axis].size;
        from += index * axes[axis].from;
        to += index * axes[axis].to;
      }
      const int64_t width = minimum(tile_columns, columns.size - column);
      const int64_t row_end = minimum(row_begin + tile_rows, rows.size);
      for (int64_t r = row_begin; r < row_end; ++r) {
        row(source + (from + r * rows.from) * from_bytes, columns.from, target + (to + r * rows.to) * to_bytes,
            columns.to, width);
      }
    }
  });
}

void copy_elements(const clover_tensor& src, const clover_tensor& dst) {
  const int64_t bytes = src.dtype.bits / 8 * src.dtype.lanes;
  const CopyRow row = bytes == 1   ? copy_row<uint8_t>
                      : bytes == 2 ? copy_row<uint16_t>
                      : bytes == 4 ? copy_row<uint32_t>
                                   : copy_row<uint64_t>;
  copy(src, dst, bytes, bytes, row);
}

}  // namespace

void rearrange(const clover_call&, const clover_rearrange_args& args, const clover_rearrange_dims&) {
  copy_elements(*args.src, *args.dst);
}

void cast(const clover_call&, const clover_cast_args& args, const clover_cast_dims&) {
  const clover_dtype from = args.src->dtype;
  const clover_dtype to = args.dst->dtype;
  if (from.code == to.code && from.bits == to.bits) return copy_elements(*args.src, *args.dst);
  with_float_type(from, [&](auto from_type) {
    with_float_type(to, [&](auto to_type) {
      using From = typename decltype(from_type)::type;
      using To = typename decltype(to_type)::type;
      copy(*args.src, *args.dst, sizeof(From), sizeof(To), cast_row<From, To>);
    });
  });
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
