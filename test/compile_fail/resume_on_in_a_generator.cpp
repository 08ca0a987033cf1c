// expect: resume_on belongs in a task: another coroutine does not end once
#include <weft/combine.hpp>
#include <weft/generator.hpp>

weft::async_generator<int> numbers(weft::executor& ex) {
  co_await weft::resume_on(ex);
  co_yield 1;
}
