#include "launch.h"

#include <ATen/Parallel.h>

namespace tessiq {

void launch_host_kernel(HostKernel kernel, void* const* buffers, const std::int64_t* words, std::int64_t iterations,
                        std::int64_t grain) {
  at::parallel_for(0, iterations, grain,
                   [&](std::int64_t begin, std::int64_t end) { kernel(buffers, words, begin, end); });
}

}  // namespace tessiq
