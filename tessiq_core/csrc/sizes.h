// Sizes of one call: every size, stride, offset and launch word a plan's steps need, as integers.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessiq {

// A stack program that fills the table of sizes; the operand of the first two follows it in the code.
enum class SizeCode : std::int64_t {
  kConstant,
  kSymbol,
  kAdd,
  kMultiply,
  kFloorDivide,
  kModulo,
  kMax,
  kMin,
  kPower,
  kEmit
};

// A size that is no 64-bit integer in this call: a division by zero, a negative power, or an overflow.
struct SizeFault : std::runtime_error {
  explicit SizeFault(std::size_t entry)
      : std::runtime_error("tessiq: size number " + std::to_string(entry) + " has no 64-bit value"), number(entry) {}
  std::size_t number;  // counted in the table
};

// The table a program makes of the symbols' values. Throws SizeFault.
std::vector<std::int64_t> evaluate(const std::vector<std::int64_t>& code, const std::vector<std::int64_t>& symbols);

// Python's integer division and remainder: they round down. The divisor is neither 0 nor, with the least integer, -1.
std::int64_t floor_divide(std::int64_t a, std::int64_t b);
std::int64_t modulo(std::int64_t a, std::int64_t b);

}  // namespace tessiq
