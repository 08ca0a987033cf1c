// expect: nothrow belongs in a task: elsewhere, a failure is thrown
// expect: fail_with belongs in a task: elsewhere, throw
#include <stdexcept>
#include <weft/async_generator.hpp>
#include <weft/nothrow.hpp>

weft::task<int> number();

weft::async_generator<int> hands_on() { co_yield co_await weft::nothrow(number()); }
weft::async_generator<int> fails() {
  const std::runtime_error why{"none"};
  co_await weft::fail_with(why);
  co_yield 1;
}
