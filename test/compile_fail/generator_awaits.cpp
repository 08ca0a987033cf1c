// expect: a weft::generator cannot co_await: whoever iterates it is no coroutine. Use weft::async_generator
#include <coroutine>
#include <weft/generator.hpp>

weft::generator<int> waits() {
  co_await std::suspend_always{};
  co_yield 1;
}
