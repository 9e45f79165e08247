// The callable that runs a plan, and what its plan needs of the interpreter.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include "plan.h"

namespace tessiq {

// Calls the methods `mismatch`, `size_fault` and `bind` of a Python object.
class PythonHost final : public Host {
 public:
  // `base`: the list of slots a step in the interpreter starts with, constants in their places.
  PythonHost(py::object methods, py::list base) : methods_(std::move(methods)), base_(std::move(base)) {}
  [[noreturn]] void mismatch(const std::string& who, const c10::IValue& value, const Layout& layout,
                             const std::int64_t* sizes) const override;
  [[noreturn]] void size_fault(std::size_t segment, const std::vector<std::int64_t>& symbols,
                               std::size_t number) const override;
  std::shared_ptr<const void> bind(std::size_t segment, const std::vector<std::int64_t>& symbols) const override;
  void run_step(const void* bound, std::size_t index, const std::vector<std::uint32_t>& reads,
                const std::vector<std::uint32_t>& writes, std::vector<c10::IValue>& slots) const override;

 private:
  py::object methods_;
  py::list base_;
};

// Everything a runner has. Made and destroyed with the GIL. The runner itself takes the last three over.
struct RunnerParts {
  Plan plan;
  std::vector<std::int64_t> outputs;  // slot, or -1
  std::vector<py::object> literals;   // for each output what stands there where it has no slot
  std::unique_ptr<PythonHost> host;
  const std::int64_t* observing = nullptr;  // not 0 while somebody observes: then `python` runs
  py::object recipe;
  py::object interpreted;  // names of the nodes whose steps run in the interpreter
  py::object python;       // the Python runner of the same recipe
};

// A new reference to a runner: `runner(args)` empties the list and returns the list of outputs.
PyObject* make_runner(std::unique_ptr<RunnerParts> parts);

// Adds the runner's type to the module as `PlanRunner`.
void add_runner_type(py::module_& module);

}  // namespace tessiq
