// Whole operators, called boxed through the dispatcher.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

#include "steps.h"

namespace tessiq {

// One argument of a call: a constant, the value of a slot, or a list that holds slots.
struct Argument {
  enum class Kind : std::uint8_t { kConstant, kSlot, kTensors, kOptionalTensors, kInts, kDoubles, kBools };
  // What the operator takes where Python would convert a number.
  enum class As : std::uint8_t { kItself, kTensor, kDouble, kInt };

  Kind kind = Kind::kConstant;
  As as = As::kItself;
  std::uint32_t slot = 0;
  c10::IValue constant;
  std::vector<Argument> items;
};

// How a slot's value is passed where the operator's schema says `type`; none where a slot cannot be passed there.
std::optional<Argument::As> conversion(const c10::Type& type);

// The kind of a list argument that holds slots, and the type of its items; none for what is no such list.
std::optional<std::pair<Argument::Kind, c10::TypePtr>> list_kind(const c10::Type& type);

// A number where a tensor is expected: a tensor that does not take part in type promotion as one.
at::Tensor wrapped_number(const c10::IValue& number);

class CallStep final : public Step {
 public:
  struct Result {
    std::uint32_t number = 0;  // among the values the operator returns, those in lists counted singly
    std::uint32_t slot = 0;
    Settle settle;
  };
  CallStep(c10::OperatorHandle handle, std::vector<Argument> arguments, std::vector<Result> results, bool nested)
      : handle_(handle), arguments_(std::move(arguments)), results_(std::move(results)), nested_(nested) {}
  void run(Frame& frame) const override;

 private:
  c10::OperatorHandle handle_;
  std::vector<Argument> arguments_;
  std::vector<Result> results_;
  bool nested_;
};

}  // namespace tessiq
