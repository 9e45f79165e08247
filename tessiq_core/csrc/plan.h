// A plan as C++ runs it: slots, and segments of steps over them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tessiq {

// Consecutive entries of a segment's table of sizes.
struct Range {
  std::uint32_t start = 0;
  std::uint32_t count = 0;
  at::IntArrayRef in(const std::int64_t* sizes) const { return {sizes + start, count}; }
};

// A tensor type: its sizes and strides in elements are known when a segment's table is.
struct Layout {
  at::ScalarType dtype = at::kFloat;
  Range shape;
  Range strides;
};

// What runs in the interpreter. Called without the GIL; each takes it.
class Host {
 public:
  virtual ~Host() = default;
  // Raises the error for a value that has not the layout it must have.
  [[noreturn]] virtual void mismatch(const std::string& who, const c10::IValue& value, const Layout& layout,
                                     const std::int64_t* sizes) const = 0;
  // Raises the error for a size that is no integer in this call.
  [[noreturn]] virtual void size_fault(std::size_t segment, const std::vector<std::int64_t>& symbols,
                                       std::size_t number) const = 0;
  // The segment's steps that need the interpreter, bound to sizes: what `run_step` takes. Null where there are none.
  virtual std::shared_ptr<const void> bind(std::size_t segment, const std::vector<std::int64_t>& symbols) const = 0;
  // Runs number `index` of them: reads the slots `reads` and fills the slots `writes`.
  virtual void run_step(const void* bound, std::size_t index, const std::vector<std::uint32_t>& reads,
                        const std::vector<std::uint32_t>& writes, std::vector<c10::IValue>& slots) const = 0;
};

// One call in progress. A slot holds a tensor, an int, a double, a bool, None, or a Python object.
struct Frame {
  std::vector<c10::IValue> slots;
  std::vector<c10::IValue> stack;  // arguments and results of the operator that runs
  const std::int64_t* sizes = nullptr;
  const void* bound = nullptr;
  const Host& host;
};

class Step {
 public:
  virtual ~Step() = default;
  virtual void run(Frame& frame) const = 0;
};

struct Entry {
  std::unique_ptr<Step> step;
  std::vector<std::uint32_t> release;  // slots read no more after it
};

// A symbol only running tells: the number in `slot`, or that axis of its shape where `axis` is not negative.
struct LateSymbol {
  std::uint32_t slot = 0;
  std::int64_t axis = -1;
};

// What a segment's steps need of one set of sizes.
struct Bound {
  std::vector<std::int64_t> sizes;
  std::shared_ptr<const void> steps;
};

// Steps that need the same symbols, and the symbols known after them.
struct Segment {
  std::vector<Entry> entries;
  std::vector<std::int64_t> code;  // of the table of sizes
  std::vector<LateSymbol> late;
  std::vector<std::uint32_t> late_release;  // released when the late symbols are read
};

// Where a call finds a symbol: input number `input` itself, or that axis of its shape where `axis` is not negative.
struct SymbolBinding {
  std::uint32_t input = 0;
  std::int64_t axis = -1;
};

// Runs segments. Thread-safe.
class Plan {
 public:
  static constexpr std::size_t kBoundSizes = 64;  // sets of sizes kept for a segment

  std::vector<c10::IValue> slots;    // constants in their places
  std::vector<std::int64_t> inputs;  // slot, or -1 for an input nothing reads
  std::vector<SymbolBinding> symbols;
  std::vector<Segment> segments;

  // Runs every step. Call it without the GIL: it may wait for a thread that waits for the interpreter.
  void run(Frame& frame, std::vector<std::int64_t> symbol_values) const;
  // To be called once, when the segments are complete.
  void seal() { known_ = std::vector<Known>(segments.size()); }

 private:
  struct Known {
    std::mutex mutex;
    std::atomic<const Bound*> fixed{nullptr};  // of a segment without symbols
    std::map<std::vector<std::int64_t>, std::shared_ptr<const Bound>> bound;
  };
  std::shared_ptr<const Bound> bind(std::size_t segment, const std::vector<std::int64_t>& symbols,
                                    const Host& host) const;

  mutable std::vector<Known> known_;
};

}  // namespace tessiq
