// tessiq_core._C: the one compiled module. Loading it registers nothing with PyTorch.
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "builder.h"
#include "launch.h"
#include "runner.h"
#include "sizes.h"

namespace {

// Addresses and words arrive as the integers Python holds; 0 for an empty array.
void launch(std::uintptr_t kernel, std::uintptr_t buffers, std::uintptr_t words, std::int64_t iterations,
            std::int64_t grain) {
  if (kernel == 0) {
    throw py::value_error("tessiq: launch expected the address of a kernel, got 0; this is a bug in tessiq");
  }
  py::gil_scoped_release release;
  tessiq::launch_host_kernel(reinterpret_cast<tessiq::HostKernel>(kernel), reinterpret_cast<void* const*>(buffers),
                             reinterpret_cast<const std::int64_t*>(words), iterations, grain);
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "tessiq's compiled module: what PyTorch or the per-call path forces into C++.";
  module.def("launch", &launch, py::arg("kernel"), py::arg("buffers"), py::arg("words"), py::arg("iterations"),
             py::arg("grain"),
             "Run the host kernel at an address over [0, iterations) on ATen's threads, without the GIL.");
  module.def("evaluate", &tessiq::evaluate, py::arg("code"), py::arg("symbols"),
             "The table of sizes a program makes of its symbols' values; raises RuntimeError for one without a value.");
  tessiq::add_runner_type(module);
  tessiq::add_builder(module);
}
