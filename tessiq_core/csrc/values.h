// Python objects as the values of slots, and back. All of it with the GIL.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include "plan.h"

namespace tessiq {

// A tensor, int, double, bool, complex number, generator or None as itself; anything else as the Python object it is.
c10::IValue to_value(PyObject* object);

// A new reference. An undefined tensor is None.
PyObject* to_object(const c10::IValue& value);

}  // namespace tessiq
