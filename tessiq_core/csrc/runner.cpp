#include "runner.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <structmember.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include "values.h"

namespace tessiq {

namespace {

struct RunnerObject {
  PyObject_HEAD;
  vectorcallfunc call;
  PyObject* weak_references;
  RunnerParts* parts;
  PyObject* recipe;
  PyObject* interpreted;
  PyObject* python;
};

PyTypeObject* runner_type = nullptr;

RunnerObject* self_of(PyObject* object) { return reinterpret_cast<RunnerObject*>(object); }

// The symbols' values; false where an input is not what the plan was made for, which the Python runner then says.
bool read_symbols(const Plan& plan, PyObject* args, std::vector<std::int64_t>& values) {
  for (const SymbolBinding& binding : plan.symbols) {
    PyObject* const item = PyList_GET_ITEM(args, binding.input);
    if (binding.axis >= 0) {
      if (!THPVariable_Check(item) || THPVariable_Unpack(item).dim() <= binding.axis) {
        return false;
      }
      values.push_back(THPVariable_Unpack(item).size(binding.axis));
    } else {
      int overflow = 0;
      if (!PyLong_CheckExact(item)) {
        return false;
      }
      values.push_back(PyLong_AsLongLongAndOverflow(item, &overflow));
      if (overflow != 0) {
        return false;
      }
    }
  }
  return true;
}

void run_released(const Plan& plan, Frame& frame, std::vector<std::int64_t> symbols) {
  const py::gil_scoped_release release;
  // Below autograd, and below the key that counts versions and tracks views: AOTAutograd does both for the whole graph.
  const at::AutoDispatchBelowADInplaceOrView below;
  const c10::AutoGradMode no_grad(false);
  frame.stack.reserve(16);
  plan.run(frame, std::move(symbols));
}

PyObject* gather(const RunnerParts& parts, const Frame& frame) {
  py::object outputs = py::reinterpret_steal<py::object>(PyList_New(static_cast<Py_ssize_t>(parts.outputs.size())));
  if (!outputs) {
    throw py::error_already_set();
  }
  for (std::size_t position = 0; position < parts.outputs.size(); ++position) {
    const std::int64_t slot = parts.outputs[position];
    PyObject* const value =
        slot < 0 ? parts.literals[position].inc_ref().ptr() : to_object(frame.slots[static_cast<std::size_t>(slot)]);
    if (value == nullptr) {
      throw python_error();
    }
    PyList_SET_ITEM(outputs.ptr(), static_cast<Py_ssize_t>(position), value);
  }
  return outputs.release().ptr();
}

PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t flags, PyObject* keywords) {
  HANDLE_TH_ERRORS
  const RunnerParts& parts = *self_of(self)->parts;
  const Plan& plan = parts.plan;
  PyObject* const args = PyVectorcall_NARGS(flags) == 1 && keywords == nullptr ? arguments[0] : nullptr;
  std::vector<std::int64_t> symbols;
  if (*parts.observing != 0 || args == nullptr || !PyList_CheckExact(args) ||
      PyList_GET_SIZE(args) != static_cast<Py_ssize_t>(plan.inputs.size()) || !read_symbols(plan, args, symbols)) {
    return PyObject_Vectorcall(self_of(self)->python, arguments, flags, keywords);
  }
  Frame frame{plan.slots, {}, nullptr, nullptr, *parts.host};
  for (std::size_t number = 0; number < plan.inputs.size(); ++number) {
    if (plan.inputs[number] >= 0) {
      frame.slots[static_cast<std::size_t>(plan.inputs[number])] =
          to_value(PyList_GET_ITEM(args, static_cast<Py_ssize_t>(number)));
    }
  }
  if (PyList_SetSlice(args, 0, PyList_GET_SIZE(args), nullptr) != 0) {
    throw python_error();
  }
  run_released(plan, frame, std::move(symbols));
  return gather(parts, frame);
  END_HANDLE_TH_ERRORS
}

void destroy(PyObject* self) {
  PyObject_GC_UnTrack(self);
  RunnerObject* const runner = self_of(self);
  if (runner->weak_references != nullptr) {
    PyObject_ClearWeakRefs(self);
  }
  delete runner->parts;
  Py_CLEAR(runner->recipe);
  Py_CLEAR(runner->interpreted);
  Py_CLEAR(runner->python);
  PyTypeObject* const type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(self_of(self)->recipe);
  Py_VISIT(self_of(self)->interpreted);
  Py_VISIT(self_of(self)->python);
  return 0;
}

std::array<PyMemberDef, 6> members{{
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(RunnerObject, call), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(RunnerObject, weak_references), READONLY, nullptr},
    {"recipe", T_OBJECT_EX, offsetof(RunnerObject, recipe), READONLY, "The recipe it runs."},
    {"interpreted", T_OBJECT_EX, offsetof(RunnerObject, interpreted), READONLY,
     "Names of the nodes whose steps take the GIL, in the plan's order."},
    {"python", T_OBJECT_EX, offsetof(RunnerObject, python), READONLY, "The Python runner of the same recipe."},
    {nullptr, 0, 0, 0, nullptr},
}};

}  // namespace

void PythonHost::mismatch(const std::string& who, const c10::IValue& value, const Layout& layout,
                          const std::int64_t* sizes) const {
  const py::gil_scoped_acquire gil;
  const py::object object = py::reinterpret_steal<py::object>(to_object(value));
  methods_.attr("mismatch")(who, object, layout.dtype, layout.shape.in(sizes).vec(), layout.strides.in(sizes).vec());
  throw std::logic_error("tessiq: a mismatch must raise");
}

void PythonHost::size_fault(std::size_t segment, const std::vector<std::int64_t>& symbols, std::size_t number) const {
  const py::gil_scoped_acquire gil;
  methods_.attr("size_fault")(segment, symbols, number);
  throw std::logic_error("tessiq: a size without a value must raise");
}

std::shared_ptr<const void> PythonHost::bind(std::size_t segment, const std::vector<std::int64_t>& symbols) const {
  const py::gil_scoped_acquire gil;
  py::object steps = methods_.attr("bind")(segment, py::tuple(py::cast(symbols)));
  if (steps.is_none()) {
    return nullptr;
  }
  PyObject* const held = steps.release().ptr();
  return {held, [](const void* object) {
            if (Py_IsInitialized() != 0) {
              const py::gil_scoped_acquire deleting;
              Py_DECREF(static_cast<PyObject*>(const_cast<void*>(object)));
            }
          }};
}

void PythonHost::run_step(const void* bound, std::size_t index, const std::vector<std::uint32_t>& reads,
                          const std::vector<std::uint32_t>& writes, std::vector<c10::IValue>& slots) const {
  const py::gil_scoped_acquire gil;
  const py::object list =
      py::reinterpret_steal<py::object>(PyList_GetSlice(base_.ptr(), 0, PyList_GET_SIZE(base_.ptr())));
  if (!list) {
    throw py::error_already_set();
  }
  for (const std::uint32_t slot : reads) {
    PyObject* const value = to_object(slots[slot]);
    if (value == nullptr || PyList_SetItem(list.ptr(), slot, value) != 0) {
      throw py::error_already_set();
    }
  }
  PyObject* const steps = static_cast<PyObject*>(const_cast<void*>(bound));
  PyObject* const step = PyTuple_GET_ITEM(steps, static_cast<Py_ssize_t>(index));
  const py::object done = py::reinterpret_steal<py::object>(PyObject_CallOneArg(step, list.ptr()));
  if (!done) {
    throw py::error_already_set();
  }
  for (const std::uint32_t slot : writes) {
    slots[slot] = to_value(PyList_GET_ITEM(list.ptr(), slot));
  }
}

PyObject* make_runner(std::unique_ptr<RunnerParts> parts) {
  PyObject* const object = runner_type->tp_alloc(runner_type, 0);
  if (object == nullptr) {
    throw py::error_already_set();
  }
  RunnerObject* const runner = self_of(object);
  runner->call = &call;
  runner->recipe = parts->recipe.release().ptr();
  runner->interpreted = parts->interpreted.release().ptr();
  runner->python = parts->python.release().ptr();
  runner->parts = parts.release();
  return object;
}

void add_runner_type(py::module_& module) {
  static const char* const doc =
      "Runs a recipe without the GIL: `runner(args)` takes a list, empties it, and returns the list of outputs.";
  std::array<PyType_Slot, 6> slots{{
      {Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
      {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
      {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
      {Py_tp_members, members.data()},
      {Py_tp_doc, const_cast<char*>(doc)},
      {0, nullptr},
  }};
  PyType_Spec spec{
      "tessiq_core._C.PlanRunner", sizeof(RunnerObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
      slots.data()};
  PyObject* const type = PyType_FromSpec(&spec);
  // AOTAutograd then hands over the only reference to inputs it no longer needs.
  if (type == nullptr || PyObject_SetAttrString(type, "_boxed_call", Py_True) != 0) {
    throw py::error_already_set();
  }
  runner_type = reinterpret_cast<PyTypeObject*>(type);
  module.attr("PlanRunner") = py::reinterpret_borrow<py::object>(type);
}

}  // namespace tessiq
