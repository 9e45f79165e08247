#include "calls.h"

#include <ATen/ScalarOps.h>

namespace tessiq {

namespace {

using Values = std::vector<c10::IValue>;

c10::IValue converted(const c10::IValue& value, Argument::As as) {
  switch (as) {
    case Argument::As::kItself:
      return value;
    case Argument::As::kTensor:
      return value.isScalar() ? c10::IValue(wrapped_number(value)) : value;
    case Argument::As::kDouble:
      return value.isInt() ? c10::IValue(static_cast<double>(value.toInt())) : value;
    case Argument::As::kInt:
      return value.isBool() ? c10::IValue(static_cast<std::int64_t>(value.toBool())) : value;
  }
  return value;
}

c10::IValue single(const Argument& argument, const Values& slots) {
  return argument.kind == Argument::Kind::kConstant ? argument.constant : converted(slots[argument.slot], argument.as);
}

template <typename T, typename Take>
c10::IValue list(const std::vector<Argument>& items, const Values& slots, Take take) {
  c10::List<T> values;
  values.reserve(items.size());
  for (const Argument& item : items) {
    values.push_back(take(single(item, slots)));
  }
  return values;
}

c10::IValue evaluated(const Argument& argument, const Values& slots) {
  using Kind = Argument::Kind;
  switch (argument.kind) {
    case Kind::kConstant:
    case Kind::kSlot:
      return single(argument, slots);
    case Kind::kTensors:
      return list<at::Tensor>(argument.items, slots, [](const c10::IValue& v) { return v.toTensor(); });
    case Kind::kOptionalTensors:
      return list<std::optional<at::Tensor>>(argument.items, slots,
                                             [](const c10::IValue& v) { return v.toOptional<at::Tensor>(); });
    case Kind::kInts:
      return list<std::int64_t>(argument.items, slots, [](const c10::IValue& v) { return v.toInt(); });
    case Kind::kDoubles:
      return list<double>(argument.items, slots, [](const c10::IValue& v) { return v.toDouble(); });
    case Kind::kBools:
      return list<bool>(argument.items, slots, [](const c10::IValue& v) { return v.toBool(); });
  }
  return {};
}

void flatten(const c10::IValue& value, Values& flat) {
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) {
      flatten(item, flat);
    }
  } else {
    flat.push_back(value);
  }
}

}  // namespace

std::optional<Argument::As> conversion(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
      return conversion(*type.expectRef<c10::OptionalType>().getElementType());
    case c10::TypeKind::TensorType:
      return Argument::As::kTensor;
    case c10::TypeKind::FloatType:
      return Argument::As::kDouble;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return Argument::As::kInt;
    case c10::TypeKind::NumberType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::GeneratorType:
      return Argument::As::kItself;
    default:
      return std::nullopt;
  }
}

std::optional<std::pair<Argument::Kind, c10::TypePtr>> list_kind(const c10::Type& type) {
  using Kind = Argument::Kind;
  if (type.kind() == c10::TypeKind::OptionalType) {
    return list_kind(*type.expectRef<c10::OptionalType>().getElementType());
  }
  if (type.kind() != c10::TypeKind::ListType) {
    return std::nullopt;
  }
  const c10::TypePtr item = type.expectRef<c10::ListType>().getElementType();
  switch (item->kind()) {
    case c10::TypeKind::TensorType:
      return std::pair{Kind::kTensors, item};
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return std::pair{Kind::kInts, item};
    case c10::TypeKind::FloatType:
      return std::pair{Kind::kDoubles, item};
    case c10::TypeKind::BoolType:
      return std::pair{Kind::kBools, item};
    case c10::TypeKind::OptionalType:
      if (item->expectRef<c10::OptionalType>().getElementType()->kind() == c10::TypeKind::TensorType) {
        return std::pair{Kind::kOptionalTensors, item};
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

at::Tensor wrapped_number(const c10::IValue& number) {
  at::Tensor tensor = c10::scalar_to_tensor(number.toScalar());  // on the CPU without a dispatch
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

void CallStep::run(Frame& frame) const {
  Values& stack = frame.stack;
  stack.clear();
  for (const Argument& argument : arguments_) {
    stack.push_back(evaluated(argument, frame.slots));
  }
  handle_.callBoxed(&stack);
  if (nested_) {
    Values flat;
    for (const c10::IValue& value : stack) {
      flatten(value, flat);
    }
    stack.swap(flat);
  }
  for (const Result& result : results_) {
    TORCH_CHECK(result.number < stack.size(), "tessiq: ", handle_.operator_name(), " returned ", stack.size(),
                " values; the plan reads number ", result.number);
    c10::IValue value = std::move(stack[result.number]);
    if (value.isTensor() && !value.toTensor().defined()) {
      value = c10::IValue();
    }
    settle(value, result.settle, frame);
    frame.slots[result.slot] = std::move(value);
  }
  stack.clear();
}

}  // namespace tessiq
