#include "plan.h"

#include "sizes.h"

namespace tessiq {

namespace {

std::int64_t value_of(const LateSymbol& late, const std::vector<c10::IValue>& slots) {
  const c10::IValue& value = slots[late.slot];
  return late.axis < 0 ? value.toInt() : value.toTensor().size(late.axis);
}

}  // namespace

std::shared_ptr<const Bound> Plan::bind(std::size_t segment, const std::vector<std::int64_t>& symbols,
                                        const Host& host) const {
  Known& known = known_[segment];
  const std::lock_guard<std::mutex> lock(known.mutex);
  const auto found = known.bound.find(symbols);
  if (found != known.bound.end()) {
    return found->second;
  }
  auto made = std::make_shared<Bound>();
  try {
    made->sizes = evaluate(segments[segment].code, symbols);
  } catch (const SizeFault& fault) {
    host.size_fault(segment, symbols, fault.number);
  }
  made->steps = host.bind(segment, symbols);
  if (known.bound.size() >= kBoundSizes) {
    known.bound.erase(known.bound.begin());
  }
  known.bound.emplace(symbols, made);
  if (symbols.empty()) {
    known.fixed.store(made.get(), std::memory_order_release);  // never erased: it is the only one
  }
  return made;
}

void Plan::run(Frame& frame, std::vector<std::int64_t> symbol_values) const {
  std::shared_ptr<const Bound> held;
  for (std::size_t number = 0; number < segments.size(); ++number) {
    const Segment& segment = segments[number];
    const Bound* bound = symbol_values.empty() ? known_[number].fixed.load(std::memory_order_acquire) : nullptr;
    if (bound == nullptr) {
      held = bind(number, symbol_values, frame.host);
      bound = held.get();
    }
    frame.sizes = bound->sizes.data();
    frame.bound = bound->steps.get();
    for (const Entry& entry : segment.entries) {
      entry.step->run(frame);
      for (const std::uint32_t slot : entry.release) {
        frame.slots[slot] = c10::IValue();
      }
    }
    for (const LateSymbol& late : segment.late) {
      symbol_values.push_back(value_of(late, frame.slots));
    }
    for (const std::uint32_t slot : segment.late_release) {
      frame.slots[slot] = c10::IValue();
    }
  }
}

}  // namespace tessiq
