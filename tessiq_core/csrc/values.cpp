#include "values.h"

#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>

namespace tessiq {

c10::IValue to_value(PyObject* object) {
  if (THPVariable_Check(object)) {
    return THPVariable_Unpack(object);
  }
  if (object == Py_None) {
    return {};
  }
  if (PyBool_Check(object)) {
    return object == Py_True;
  }
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) {
      return static_cast<std::int64_t>(value);
    }
  }
  if (PyFloat_CheckExact(object)) {
    return PyFloat_AS_DOUBLE(object);
  }
  if (PyComplex_CheckExact(object)) {
    return c10::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object));
  }
  if (THPGenerator_Check(object)) {
    return THPGenerator_Unwrap(object);
  }
  return torch::jit::toIValue(object, c10::PyObjectType::get());
}

PyObject* to_object(const c10::IValue& value) {
  if (value.isTensor()) {
    return THPVariable_Wrap(value.toTensor());
  }
  if (value.isNone()) {
    Py_RETURN_NONE;
  }
  if (value.isInt()) {
    return PyLong_FromLongLong(value.toInt());
  }
  return torch::jit::toPyObject(value).release().ptr();
}

}  // namespace tessiq
