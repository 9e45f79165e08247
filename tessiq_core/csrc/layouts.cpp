#include "layouts.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty_strided.h>

namespace tessiq {

namespace {

bool has_type(const at::Tensor& tensor, const Layout& layout, at::IntArrayRef shape) {
  return tensor.layout() == at::kStrided && tensor.scalar_type() == layout.dtype && tensor.sizes() == shape &&
         !tensor.is_neg();
}

}  // namespace

bool matches(const at::Tensor& tensor, const Layout& layout, const std::int64_t* sizes) {
  return has_type(tensor, layout, layout.shape.in(sizes)) && tensor.strides() == layout.strides.in(sizes);
}

bool reads_alike(const at::Tensor& tensor, const Layout& layout, const std::int64_t* sizes) {
  const at::IntArrayRef shape = layout.shape.in(sizes);
  if (!has_type(tensor, layout, shape)) {
    return false;
  }
  const at::IntArrayRef have = tensor.strides();
  const at::IntArrayRef want = layout.strides.in(sizes);
  bool alike = true;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0) {
      return true;
    }
    alike = alike && (shape[axis] == 1 || have[axis] == want[axis]);
  }
  return alike;
}

at::Tensor reinterpret(const at::Tensor& tensor, at::IntArrayRef shape, at::IntArrayRef strides, std::int64_t offset) {
  at::Tensor view =
      at::detail::make_tensor<c10::TensorImpl>(c10::Storage(tensor.storage()), tensor.key_set(), tensor.dtype());
  c10::TensorImpl* const impl = view.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(shape, strides, tensor.storage_offset() + offset);
  return view;
}

at::Tensor allocate(const Layout& layout, const std::int64_t* sizes, const at::Device& device) {
  const at::IntArrayRef shape = layout.shape.in(sizes);
  const at::IntArrayRef strides = layout.strides.in(sizes);
  if (device.is_cpu()) {
    return at::Tensor(at::detail::empty_strided_cpu(shape, strides, layout.dtype));  // without a dispatch
  }
  return at::empty_strided(shape, strides, at::TensorOptions().dtype(layout.dtype).device(device));
}

at::Tensor with_layout(const at::Tensor& tensor, const Layout& layout, const std::int64_t* sizes) {
  const at::IntArrayRef shape = layout.shape.in(sizes);
  const at::IntArrayRef strides = layout.strides.in(sizes);
  if (reads_alike(tensor, layout, sizes)) {
    return reinterpret(tensor, shape, strides, 0);
  }
  at::Tensor result = allocate(layout, sizes, tensor.device());
  at::Tensor target = result;
  at::Tensor source = tensor;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (strides[axis] == 0 && shape[axis] > 1) {
      // An expanded axis has one element in memory: write it once.
      target = target.narrow(static_cast<std::int64_t>(axis), 0, 1);
      source = source.narrow(static_cast<std::int64_t>(axis), 0, 1);
    }
  }
  target.copy_(source);
  return result;
}

}  // namespace tessiq
