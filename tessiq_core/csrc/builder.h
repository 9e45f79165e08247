// How Python hands a plan over, step by step.
#pragma once

#include "calls.h"
#include "runner.h"

namespace tessiq {

// Collects a plan's segments. Sizes are (start, count) in the table of the segment being built.
class PlanBuilder {
 public:
  using Slots = std::vector<std::uint32_t>;
  using Sizes = std::pair<std::uint32_t, std::uint32_t>;
  using Type = std::tuple<at::ScalarType, Sizes, Sizes>;                             // dtype, shape, strides
  using Output = std::pair<std::uint32_t, Type>;                                     // slot, type
  using Checked = std::tuple<std::uint32_t, Type, bool, std::string>;                // slot, type, written to, who
  using Settled = std::tuple<std::uint32_t, int, std::optional<Type>, std::string>;  // slot, rule, type, who

  PlanBuilder(std::size_t slots, at::Device device);

  void constant(std::uint32_t slot, const py::object& value);
  void check(const std::vector<Checked>& checks);
  void settle(const std::vector<Settled>& settles);
  void view(std::uint32_t source, std::uint32_t result, Sizes shape, Sizes strides, std::uint32_t offset);
  void allocate(const std::vector<Output>& outputs);
  void kernel(std::uintptr_t address, std::int64_t grain, std::uint32_t iterations, std::uint32_t workspace,
              Sizes words, const Slots& inputs, const std::vector<Output>& outputs);
  // Arguments are ("slot", number), ("list", [argument, ...]) or ("constant", object). Results are those read, with
  // their numbers. Why the call cannot be made from here, or none.
  std::optional<std::string> call(const std::string& name, const std::string& overload, const py::list& arguments,
                                  const py::dict& keywords,
                                  const std::vector<std::pair<std::uint32_t, Settled>>& results);
  void number(int function, std::pair<std::int64_t, std::int64_t> left, std::pair<std::int64_t, std::int64_t> right,
              std::uint32_t result);
  void host(std::size_t index, const Slots& reads, const Slots& writes);
  void release(const Slots& slots);
  void end_segment(std::vector<std::int64_t> code, const std::vector<std::pair<std::uint32_t, std::int64_t>>& late,
                   const Slots& late_release);
  py::object runner(std::vector<std::int64_t> inputs,
                    const std::vector<std::pair<std::uint32_t, std::int64_t>>& symbols,
                    std::vector<std::int64_t> outputs, const py::list& literals, py::object methods, py::list base,
                    std::uintptr_t observing, py::object recipe, py::object interpreted, py::object python);

 private:
  template <typename T, typename... Arguments>
  void add(Arguments&&... arguments) {
    segment_.entries.push_back({std::make_unique<T>(std::forward<Arguments>(arguments)...), {}});
  }

  std::unique_ptr<RunnerParts> parts_;
  Segment segment_;
  at::Device device_;
};

// Adds the class to the module.
void add_builder(py::module_& module);

}  // namespace tessiq
