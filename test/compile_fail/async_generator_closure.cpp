// expect[gcc]: this compiler destroys a lambda that is written inside a co_await expression twice: name it
#include <string>
#include <weft/async_generator.hpp>

weft::async_generator<int> one() { co_yield 1; }

weft::task<> prefixed(std::string prefix) {
  auto all = co_await (one() | weft::transform([prefix](int) { return prefix; }) | weft::collect());
}
