// expect: on_scope_exit belongs in a task: a generator may be dropped
#include <weft/combine.hpp>
#include <weft/generator.hpp>
#include <weft/on_scope_exit.hpp>

weft::task<> cleanup() { co_return; }
weft::async_generator<int> numbers() {
  co_await weft::on_scope_exit(cleanup());
  co_yield 1;
}
