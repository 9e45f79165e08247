#include "sizes.h"

#include <algorithm>
#include <limits>

namespace tessiq {

namespace {

bool power(std::int64_t base, std::int64_t exponent, std::int64_t& result) {
  if (exponent < 0) {
    return false;
  }
  result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      return false;
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      return false;
    }
  }
  return true;
}

// False where the result is no 64-bit integer.
bool apply(SizeCode code, std::int64_t a, std::int64_t b, std::int64_t& result) {
  const bool divides = b != 0 && !(b == -1 && a == std::numeric_limits<std::int64_t>::min());
  switch (code) {
    case SizeCode::kAdd:
      return !__builtin_add_overflow(a, b, &result);
    case SizeCode::kMultiply:
      return !__builtin_mul_overflow(a, b, &result);
    case SizeCode::kFloorDivide:
      result = divides ? floor_divide(a, b) : 0;
      return divides;
    case SizeCode::kModulo:
      result = divides ? modulo(a, b) : 0;
      return divides;
    case SizeCode::kMax:
      result = std::max(a, b);
      return true;
    case SizeCode::kMin:
      result = std::min(a, b);
      return true;
    case SizeCode::kPower:
      return power(a, b, result);
    default:
      return false;
  }
}

}  // namespace

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::int64_t modulo(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::vector<std::int64_t> evaluate(const std::vector<std::int64_t>& code, const std::vector<std::int64_t>& symbols) {
  std::vector<std::int64_t> table;
  std::vector<std::int64_t> stack;
  for (std::size_t at = 0; at < code.size(); ++at) {
    const auto operation = static_cast<SizeCode>(code[at]);
    switch (operation) {
      case SizeCode::kConstant:
        stack.push_back(code[++at]);
        break;
      case SizeCode::kSymbol:
        stack.push_back(symbols[static_cast<std::size_t>(code[++at])]);
        break;
      case SizeCode::kEmit:
        table.push_back(stack.back());
        stack.pop_back();
        break;
      default: {
        const std::int64_t right = stack.back();
        stack.pop_back();
        if (!apply(operation, stack.back(), right, stack.back())) {
          throw SizeFault(table.size());
        }
      }
    }
  }
  return table;
}

}  // namespace tessiq
