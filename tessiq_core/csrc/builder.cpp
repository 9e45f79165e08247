#include "builder.h"

#include <pybind11/stl.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include "values.h"

namespace tessiq {

namespace {

Range range(PlanBuilder::Sizes sizes) { return {sizes.first, sizes.second}; }

Layout layout(const PlanBuilder::Type& type) {
  return {std::get<0>(type), range(std::get<1>(type)), range(std::get<2>(type))};
}

std::vector<Buffer> buffers(const std::vector<PlanBuilder::Output>& outputs) {
  std::vector<Buffer> found;
  for (const auto& [slot, type] : outputs) {
    found.push_back({slot, layout(type)});
  }
  return found;
}

Settle settle_of(const PlanBuilder::Settled& settled) {
  const auto& [slot, rule, type, who] = settled;
  return {static_cast<Rule>(rule), type.has_value() ? layout(*type) : Layout(), who};
}

bool is_number(const py::handle& object) {
  return PyBool_Check(object.ptr()) || PyLong_CheckExact(object.ptr()) || PyFloat_CheckExact(object.ptr()) ||
         PyComplex_CheckExact(object.ptr());
}

bool takes_tensor(const c10::Type& type) {
  return type.kind() == c10::TypeKind::OptionalType
             ? takes_tensor(*type.expectRef<c10::OptionalType>().getElementType())
             : type.kind() == c10::TypeKind::TensorType;
}

// `type`: with SymInt, ScalarType and the like, as the schema spells it. None where it cannot be passed.
std::optional<Argument> argument(const py::handle& given, const c10::TypePtr& type, std::optional<std::int32_t> size) {
  const py::tuple pair = py::cast<py::tuple>(given);
  const std::string kind = py::cast<std::string>(pair[0]);
  Argument made;
  if (kind == "slot") {
    const auto as = conversion(*type);
    if (!as.has_value()) {
      return std::nullopt;
    }
    made.kind = Argument::Kind::kSlot;
    made.as = *as;
    made.slot = py::cast<std::uint32_t>(pair[1]);
    return made;
  }
  if (kind == "list") {
    const auto found = list_kind(*type);
    if (!found.has_value()) {
      return std::nullopt;
    }
    made.kind = found->first;
    for (const py::handle item : py::cast<py::list>(pair[1])) {
      auto element = argument(item, found->second, std::nullopt);
      if (!element.has_value() || element->kind > Argument::Kind::kSlot) {
        return std::nullopt;
      }
      made.items.push_back(std::move(*element));
    }
    return made;
  }
  const py::object value = pair[1];
  try {
    made.constant = takes_tensor(*type) && is_number(value) ? c10::IValue(wrapped_number(to_value(value.ptr())))
                                                            : torch::jit::toIValue(value, type, size);
  } catch (const py::cast_error&) {
    return std::nullopt;
  }
  return made;
}

bool returns_list(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns()) {
    if (result.type()->kind() == c10::TypeKind::ListType) {
      return true;
    }
  }
  return false;
}

}  // namespace

PlanBuilder::PlanBuilder(std::size_t slots, at::Device device)
    : parts_(std::make_unique<RunnerParts>()), device_(device) {
  parts_->plan.slots.resize(slots);
}

void PlanBuilder::constant(std::uint32_t slot, const py::object& value) {
  parts_->plan.slots.at(slot) = to_value(value.ptr());
}

void PlanBuilder::check(const std::vector<Checked>& checks) {
  std::vector<CheckStep::Check> made;
  for (const auto& [slot, type, written, who] : checks) {
    made.push_back({{slot, layout(type)}, written, who});
  }
  add<CheckStep>(std::move(made), device_);
}

void PlanBuilder::settle(const std::vector<Settled>& settles) {
  std::vector<std::pair<std::uint32_t, Settle>> made;
  for (const Settled& settled : settles) {
    made.emplace_back(std::get<0>(settled), settle_of(settled));
  }
  add<SettleStep>(std::move(made));
}

void PlanBuilder::view(std::uint32_t source, std::uint32_t result, Sizes shape, Sizes strides, std::uint32_t offset) {
  add<ViewStep>(source, result, range(shape), range(strides), offset);
}

void PlanBuilder::allocate(const std::vector<Output>& outputs) { add<AllocateStep>(buffers(outputs), device_); }

void PlanBuilder::kernel(std::uintptr_t address, std::int64_t grain, std::uint32_t iterations, std::uint32_t workspace,
                         Sizes words, const Slots& inputs, const std::vector<Output>& outputs) {
  if (address == 0) {
    throw py::value_error("tessiq: a plan's kernel has the address 0; this is a bug in tessiq");
  }
  add<KernelStep>(KernelStep::Launch{reinterpret_cast<HostKernel>(address), grain, iterations, workspace, range(words)},
                  inputs, buffers(outputs));
}

std::optional<std::string> PlanBuilder::call(const std::string& name, const std::string& overload,
                                             const py::list& arguments, const py::dict& keywords,
                                             const std::vector<std::pair<std::uint32_t, Settled>>& results) {
  const auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!handle.has_value()) {
    return "the dispatcher has no operator " + name + "." + overload;
  }
  const c10::FunctionSchema& schema = handle->schema();
  std::vector<Argument> made;
  std::size_t position = 0;
  std::size_t named = 0;
  for (const c10::Argument& wanted : schema.arguments()) {
    py::object given = py::none();
    if (!wanted.kwarg_only() && position < arguments.size()) {
      given = arguments[position++];
    } else if (keywords.contains(wanted.name())) {
      given = keywords[wanted.name().c_str()];
      ++named;
    }
    std::optional<Argument> found;
    if (!given.is_none()) {
      found = argument(given, wanted.real_type(), wanted.N());
    } else if (wanted.default_value().has_value()) {
      found.emplace().constant = *wanted.default_value();
    }
    if (!found.has_value()) {
      return "the argument " + wanted.name() + " of " + name + " is not passed from C++";
    }
    made.push_back(std::move(*found));
  }
  if (position != arguments.size() || named != keywords.size()) {
    return "the call has arguments " + name + " does not take";
  }
  std::vector<CallStep::Result> read;
  for (const auto& [number, settled] : results) {
    read.push_back({number, std::get<0>(settled), settle_of(settled)});
  }
  add<CallStep>(*handle, std::move(made), std::move(read), returns_list(schema));
  return std::nullopt;
}

void PlanBuilder::number(int function, std::pair<std::int64_t, std::int64_t> left,
                         std::pair<std::int64_t, std::int64_t> right, std::uint32_t result) {
  add<NumberStep>(static_cast<NumberStep::Function>(function), NumberStep::Operand{left.first, left.second},
                  NumberStep::Operand{right.first, right.second}, result);
}

void PlanBuilder::host(std::size_t index, const Slots& reads, const Slots& writes) {
  add<HostStep>(index, reads, writes);
}

void PlanBuilder::release(const Slots& slots) { segment_.entries.back().release = slots; }

void PlanBuilder::end_segment(std::vector<std::int64_t> code,
                              const std::vector<std::pair<std::uint32_t, std::int64_t>>& late,
                              const Slots& late_release) {
  segment_.code = std::move(code);
  for (const auto& [slot, axis] : late) {
    segment_.late.push_back({slot, axis});
  }
  segment_.late_release = late_release;
  parts_->plan.segments.push_back(std::move(segment_));
  segment_ = Segment();
}

py::object PlanBuilder::runner(std::vector<std::int64_t> inputs,
                               const std::vector<std::pair<std::uint32_t, std::int64_t>>& symbols,
                               std::vector<std::int64_t> outputs, const py::list& literals, py::object methods,
                               py::list base, std::uintptr_t observing, py::object recipe, py::object interpreted,
                               py::object python) {
  Plan& plan = parts_->plan;
  plan.inputs = std::move(inputs);
  for (const auto& [input, axis] : symbols) {
    plan.symbols.push_back({input, axis});
  }
  plan.seal();
  parts_->outputs = std::move(outputs);
  for (const py::handle literal : literals) {
    parts_->literals.push_back(py::reinterpret_borrow<py::object>(literal));
  }
  parts_->host = std::make_unique<PythonHost>(std::move(methods), std::move(base));
  parts_->observing = reinterpret_cast<const std::int64_t*>(observing);
  parts_->recipe = std::move(recipe);
  parts_->interpreted = std::move(interpreted);
  parts_->python = std::move(python);
  return py::reinterpret_steal<py::object>(make_runner(std::move(parts_)));
}

void add_builder(py::module_& module) {
  py::class_<PlanBuilder>(module, "PlanBuilder", "Collects a plan's steps; `runner` ends it.")
      .def(py::init<std::size_t, at::Device>(), py::arg("slots"), py::arg("device"))
      .def("constant", &PlanBuilder::constant)
      .def("check", &PlanBuilder::check)
      .def("settle", &PlanBuilder::settle)
      .def("view", &PlanBuilder::view)
      .def("allocate", &PlanBuilder::allocate)
      .def("kernel", &PlanBuilder::kernel)
      .def("call", &PlanBuilder::call)
      .def("number", &PlanBuilder::number)
      .def("host", &PlanBuilder::host)
      .def("release", &PlanBuilder::release)
      .def("end_segment", &PlanBuilder::end_segment)
      .def("runner", &PlanBuilder::runner, py::arg("inputs"), py::arg("symbols"), py::arg("outputs"),
           py::arg("literals"), py::arg("methods"), py::arg("base"), py::arg("observing"), py::arg("recipe"),
           py::arg("interpreted"), py::arg("python"));
}

}  // namespace tessiq
