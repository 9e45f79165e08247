"""How reduce stages combine: C text of one step, of what no element gives, and of adding up lanes.

A reduce runs over *lanes*: an array of accumulators, one for every LANES-th element of a row, or one for each column of
a tile. Which lane an element meets, and in which order, is written in the source and does not depend on the compiler's
vector length. Floating sums are tree-like: a lane adds up CHUNK elements from 0; chunks of a lane are added up by
sixteens, those again by sixteens, and so on (`tq_cascade`); the lanes of a row are folded in halves. So no number
passes through more than about CHUNK + 16 * log16(n / CHUNK) + log2(LANES) roundings; PyTorch's own cascade is alike.
"""

from __future__ import annotations

from tessiq_core.codegen.description import Reduce
from tessiq_core.ir.types import BOOL, ElementType
from tessiq_cpuref.cpp.elements import accumulation, constant

LANES = 64
"""Lanes of a row; four vectors of the widest registers, so that additions need not wait for each other.

Arrays of lanes start at multiples of 64 bytes, and those of columns have a multiple of LANES elements, so that every
array inside `tq_cascade` does too: g++ 12 was seen to use aligned stores to one that had only its elements' alignment.
"""

CHUNK = 16
"""Elements a lane of a floating sum adds up before it starts again from 0."""

TEXT = """\
struct tq_combine_sum {
  template <class T> static inline T of(T a, T b) { return T(a + b); }
};
struct tq_combine_prod {
  template <class T> static inline T of(T a, T b) { return T(a * b); }
};
struct tq_combine_max {                                             // a NaN stays
  template <class T> static inline T of(T a, T b) { return ((b > a) | (b != b)) ? b : a; }
};
struct tq_combine_min {
  template <class T> static inline T of(T a, T b) { return ((b < a) | (b != b)) ? b : a; }
};
struct tq_combine_any {
  static inline bool of(bool a, bool b) { return a | b; }
};
struct tq_combine_all {
  static inline bool of(bool a, bool b) { return a & b; }
};
template <int N, class T> static inline void tq_fill(T *lanes, T value) {
#pragma omp simd
  for (int lane = 0; lane < N; ++lane) lanes[lane] = value;
}
template <class Combine, int N, class T> static inline T tq_fold(T *lanes) {
  for (int half = N / 2; half > 0; half /= 2) {
#pragma omp simd
    for (int lane = 0; lane < half; ++lane) lanes[lane] = Combine::of(lanes[lane], lanes[lane + half]);
  }
  return lanes[0];
}
template <int N, class T> struct tq_cascade {                       // sums of 16, of 16 of those, and so on
  alignas(64) T sums[6][N];
  i64 count[6] = {};
  void put(const T *lanes, int width) {
    for (int level = 0;; ++level) {
      T *sum = sums[level];
      if (count[level] == 0) {
#pragma omp simd
        for (int lane = 0; lane < width; ++lane) sum[lane] = lanes[lane];
      } else {
#pragma omp simd
        for (int lane = 0; lane < width; ++lane) sum[lane] = sum[lane] + lanes[lane];
      }
      if (++count[level] < 16 || level == 5) return;
      count[level] = 0;
      lanes = sum;
    }
  }
  void finish(T *lanes, int width) const {                          // into `lanes`, which hold the last chunk
    for (int level = 0; level < 6; ++level) {
      if (count[level] == 0) continue;
#pragma omp simd
      for (int lane = 0; lane < width; ++lane) lanes[lane] = lanes[lane] + sums[level][lane];
    }
  }
};
"""


def accumulator(stage: Reduce) -> ElementType:
    """The type the reduce's lanes have: its compute type, f32 for half types; bool for any and all."""
    return BOOL if stage.combine in ("any", "all") else accumulation(stage.compute)


def cascades(stage: Reduce) -> bool:
    """Whether the reduce is a floating sum, whose rounding errors would grow with a plain loop's length."""
    return stage.combine == "sum" and accumulator(stage).is_float


def combine_name(stage: Reduce) -> str:
    return f"tq_combine_{stage.combine}"


def identity(stage: Reduce) -> str:
    """C text of what the reduce gives for no element: 0, 1, false, true; for max and min the type's far end."""
    element = accumulator(stage)
    match stage.combine:
        case "sum" | "any":
            return constant(0, element)
        case "prod" | "all":
            return constant(1, element)
    least = stage.combine == "max"
    if element == BOOL:
        return constant(not least, element)
    if element.is_float:
        return constant(float("-inf") if least else float("inf"), element)
    bits = 8 * element.size
    if element.kind == "uint":
        return constant(0 if least else 2**bits - 1, element)
    return constant(-(2 ** (bits - 1)) if least else 2 ** (bits - 1) - 1, element)
