#include "steps.h"

#include <ATen/EmptyTensor.h>

#include <array>
#include <limits>

#include "layouts.h"
#include "sizes.h"

namespace tessiq {

namespace {

std::int64_t number(const NumberStep::Operand& operand, const Frame& frame) {
  return operand.slot < 0 ? operand.constant : frame.slots[static_cast<std::size_t>(operand.slot)].toInt();
}

// A result whose memory is read. PyTorch's kernels return another element type than its shape functions say in a few
// places (the running statistics of a bfloat16 batch norm).
at::Tensor recorded(const c10::IValue& value, const Settle& settle, const Frame& frame) {
  if (!value.isTensor() || value.toTensor().sizes() != settle.layout.shape.in(frame.sizes)) {
    frame.host.mismatch(settle.who, value, settle.layout, frame.sizes);
  }
  return with_layout(value.toTensor().to(settle.layout.dtype), settle.layout, frame.sizes);
}

}  // namespace

void settle(c10::IValue& value, const Settle& settle, const Frame& frame) {
  if (settle.rule == Rule::kNone || value.isNone()) {
    return;
  }
  const Layout& layout = settle.layout;
  if (settle.rule == Rule::kRestride) {
    if (value.isTensor() && value.toTensor().layout() == at::kStrided) {
      const at::Tensor& tensor = value.toTensor();
      if (tensor.strides() != layout.strides.in(frame.sizes) && tensor.scalar_type() == layout.dtype &&
          tensor.sizes() == layout.shape.in(frame.sizes)) {
        value = with_layout(tensor, layout, frame.sizes);
      }
    }
    return;
  }
  if (value.isTensor() && matches(value.toTensor(), layout, frame.sizes)) {
    return;
  }
  if (settle.rule == Rule::kRequire) {
    frame.host.mismatch(settle.who, value, layout, frame.sizes);
  }
  value = recorded(value, settle, frame);
}

void ViewStep::run(Frame& frame) const {
  frame.slots[result_] = reinterpret(frame.slots[source_].toTensor(), shape_.in(frame.sizes), strides_.in(frame.sizes),
                                     frame.sizes[offset_]);
}

void AllocateStep::run(Frame& frame) const {
  for (const Buffer& output : outputs_) {
    frame.slots[output.slot] = allocate(output.layout, frame.sizes, device_);
  }
}

void KernelStep::run(Frame& frame) const {
  constexpr std::size_t kFew = 16;
  const std::size_t count = inputs_.size() + outputs_.size() + 1;
  std::array<void*, kFew> few;
  std::vector<void*> many(count > kFew ? count : 0);
  void** const buffers = count > kFew ? many.data() : few.data();
  std::size_t next = 0;
  for (const std::uint32_t slot : inputs_) {
    buffers[next++] = const_cast<void*>(frame.slots[slot].toTensor().const_data_ptr());
  }
  for (const Buffer& output : outputs_) {
    at::Tensor tensor = allocate(output.layout, frame.sizes, at::kCPU);
    buffers[next++] = tensor.mutable_data_ptr();
    frame.slots[output.slot] = std::move(tensor);
  }
  at::Tensor workspace;
  const std::int64_t bytes = frame.sizes[launch_.workspace];
  if (bytes != 0) {
    const std::array<std::int64_t, 1> shape{bytes};
    workspace = at::Tensor(at::detail::empty_cpu(shape, at::kByte));
    buffers[next++] = workspace.mutable_data_ptr();
  }
  launch_host_kernel(launch_.kernel, buffers, launch_.words.in(frame.sizes).data(), frame.sizes[launch_.iterations],
                     launch_.grain);
}

void CheckStep::run(Frame& frame) const {
  for (const Check& check : checks_) {
    const Layout& layout = check.input.layout;
    c10::IValue& value = frame.slots[check.input.slot];
    if (!value.isTensor() || value.toTensor().device() != device_) {
      frame.host.mismatch(check.who + " on " + device_.str(), value, layout, frame.sizes);
    }
    const at::Tensor& tensor = value.toTensor();
    if (matches(tensor, layout, frame.sizes)) {
      continue;
    }
    if (check.written && !reads_alike(tensor, layout, frame.sizes)) {
      frame.host.mismatch(check.who + ", which the graph writes to", value, layout, frame.sizes);
    }
    const bool shaped = tensor.sizes() == layout.shape.in(frame.sizes);
    if (shaped && tensor.numel() == 0) {
      // No element can be misread; PyTorch's dropout gives an empty mask of the input's type, recorded as bool.
      value = allocate(layout, frame.sizes, device_);
      continue;
    }
    if (!shaped || tensor.scalar_type() != layout.dtype) {
      frame.host.mismatch(check.who, value, layout, frame.sizes);
    }
    value = with_layout(tensor, layout, frame.sizes);
  }
}

void SettleStep::run(Frame& frame) const {
  for (const auto& [slot, rule] : settles_) {
    settle(frame.slots[slot], rule, frame);
  }
}

void NumberStep::run(Frame& frame) const {
  const std::int64_t a = number(left_, frame);
  const std::int64_t b = number(right_, frame);
  std::int64_t result = 0;
  bool overflow = false;
  switch (function_) {
    case Function::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Function::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Function::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Function::kFloorDivide:
    case Function::kModulo:
      TORCH_CHECK_VALUE(b != 0, "tessiq: a size is divided by zero");
      overflow = b == -1 && a == std::numeric_limits<std::int64_t>::min();
      if (!overflow) {
        result = function_ == Function::kModulo ? modulo(a, b) : floor_divide(a, b);
      }
      break;
    case Function::kMax:
      result = std::max(a, b);
      break;
    case Function::kMin:
      result = std::min(a, b);
      break;
    case Function::kEqual:
      frame.slots[result_] = a == b;
      return;
    case Function::kNotEqual:
      frame.slots[result_] = a != b;
      return;
    case Function::kLess:
      frame.slots[result_] = a < b;
      return;
    case Function::kLessEqual:
      frame.slots[result_] = a <= b;
      return;
    case Function::kGreater:
      frame.slots[result_] = a > b;
      return;
    case Function::kGreaterEqual:
      frame.slots[result_] = a >= b;
      return;
  }
  TORCH_CHECK_VALUE(!overflow, "tessiq: a size computed from ", a, " and ", b, " does not fit 64 bits");
  frame.slots[result_] = result;
}

}  // namespace tessiq
