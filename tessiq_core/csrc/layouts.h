// Tensors in exactly the layout a plan promises: allocating, checking and copying.
#pragma once

#include "plan.h"

namespace tessiq {

// Whether the tensor's memory can be read as the layout says.
bool matches(const at::Tensor& tensor, const Layout& layout, const std::int64_t* sizes);

// Whether the two differ at most in strides that address nothing: those of axes of extent 1, or of an empty tensor.
bool reads_alike(const at::Tensor& tensor, const Layout& layout, const std::int64_t* sizes);

// The same memory with other sizes and strides, from `offset` elements after the tensor's own start; without a history.
at::Tensor reinterpret(const at::Tensor& tensor, at::IntArrayRef shape, at::IntArrayRef strides, std::int64_t offset);

// An uninitialised tensor.
at::Tensor allocate(const Layout& layout, const std::int64_t* sizes, const at::Device& device);

// A tensor with the elements of `tensor` and exactly this layout; shape and dtype are the tensor's. A copy, unless the
// two read alike.
at::Tensor with_layout(const at::Tensor& tensor, const Layout& layout, const std::int64_t* sizes);

}  // namespace tessiq
