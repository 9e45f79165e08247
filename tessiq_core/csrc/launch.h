// Launching host kernels through ATen's thread pool.
#pragma once

#include <cstdint>

namespace tessiq {

// A generated host kernel: computes the iterations [begin, end) of its domain.
// `buffers` holds the inputs' data pointers, then the outputs'; `words` the launch words.
using HostKernel = void (*)(void* const* buffers, const std::int64_t* words, std::int64_t begin, std::int64_t end);

// Runs `kernel` over [0, iterations), split into ranges of at least `grain` over ATen's intra-op threads, so that
// torch.set_num_threads holds here too. Must be called without the GIL. A kernel does not throw.
void launch_host_kernel(HostKernel kernel, void* const* buffers, const std::int64_t* words, std::int64_t iterations,
                        std::int64_t grain);

}  // namespace tessiq
