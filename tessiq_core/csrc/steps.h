// The kinds of steps that need no operator and no interpreter.
#pragma once

#include <vector>

#include "launch.h"
#include "plan.h"

namespace tessiq {

// What is done to a result so that it has the layout its readers were promised.
enum class Rule : std::uint8_t {
  kNone,
  kRestride,  // what only PyTorch reads: other strides are copied; another shape or type goes on as it is
  kRecord,    // what is read as memory: the recorded element type and layout, or an error
  kRequire,   // memory an operator wrote to, which a copy would not be: an error where it differs
};

struct Settle {
  Rule rule = Rule::kNone;
  Layout layout;
  std::string who;
};

// Gives the value its layout, by the rule.
void settle(c10::IValue& value, const Settle& settle, const Frame& frame);

class ViewStep final : public Step {
 public:
  ViewStep(std::uint32_t source, std::uint32_t result, Range shape, Range strides, std::uint32_t offset)
      : source_(source), result_(result), offset_(offset), shape_(shape), strides_(strides) {}
  void run(Frame& frame) const override;

 private:
  std::uint32_t source_, result_, offset_;
  Range shape_, strides_;
};

struct Buffer {
  std::uint32_t slot = 0;
  Layout layout;
};

// Allocates tensors; an operator that writes in place then fills them.
class AllocateStep final : public Step {
 public:
  AllocateStep(std::vector<Buffer> outputs, at::Device device) : outputs_(std::move(outputs)), device_(device) {}
  void run(Frame& frame) const override;

 private:
  std::vector<Buffer> outputs_;
  at::Device device_;
};

// Launches a host kernel on the data pointers of its inputs, outputs and workspace (bytes, none where 0).
class KernelStep final : public Step {
 public:
  struct Launch {
    HostKernel kernel = nullptr;
    std::int64_t grain = 1;
    std::uint32_t iterations = 0, workspace = 0;  // in the table of sizes
    Range words;
  };
  KernelStep(Launch launch, std::vector<std::uint32_t> inputs, std::vector<Buffer> outputs)
      : launch_(launch), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}
  void run(Frame& frame) const override;

 private:
  Launch launch_;
  std::vector<std::uint32_t> inputs_;
  std::vector<Buffer> outputs_;
};

// Gives the inputs whose memory is read the layout the plan promises, or raises.
class CheckStep final : public Step {
 public:
  struct Check {
    Buffer input;
    bool written = false;  // then a copy would not be what is written to
    std::string who;
  };
  CheckStep(std::vector<Check> checks, at::Device device) : checks_(std::move(checks)), device_(device) {}
  void run(Frame& frame) const override;

 private:
  std::vector<Check> checks_;
  at::Device device_;
};

// Settles values that are in their slots already: results whose layout was not known before they were there.
class SettleStep final : public Step {
 public:
  explicit SettleStep(std::vector<std::pair<std::uint32_t, Settle>> settles) : settles_(std::move(settles)) {}
  void run(Frame& frame) const override;

 private:
  std::vector<std::pair<std::uint32_t, Settle>> settles_;
};

// Python's integer functions on sizes.
class NumberStep final : public Step {
 public:
  enum class Function : std::uint8_t {
    kAdd,
    kSubtract,
    kMultiply,
    kFloorDivide,
    kModulo,
    kMax,
    kMin,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
  };
  // A slot, or a constant where the slot is negative.
  struct Operand {
    std::int64_t slot = -1;
    std::int64_t constant = 0;
  };
  NumberStep(Function function, Operand left, Operand right, std::uint32_t result)
      : function_(function), left_(left), right_(right), result_(result) {}
  void run(Frame& frame) const override;

 private:
  Function function_;
  Operand left_, right_;
  std::uint32_t result_;
};

// A step the host runs in the interpreter.
class HostStep final : public Step {
 public:
  HostStep(std::size_t index, std::vector<std::uint32_t> reads, std::vector<std::uint32_t> writes)
      : index_(index), reads_(std::move(reads)), writes_(std::move(writes)) {}
  void run(Frame& frame) const override { frame.host.run_step(frame.bound, index_, reads_, writes_, frame.slots); }

 private:
  std::size_t index_;
  std::vector<std::uint32_t> reads_, writes_;
};

}  // namespace tessiq
