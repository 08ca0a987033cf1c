// expect: continue_on belongs in a task: another coroutine does not end once
#include <weft/combine.hpp>
#include <weft/generator.hpp>

weft::task<int> number() { co_return 1; }
weft::async_generator<int> numbers(weft::executor& ex) { co_yield co_await (number() | weft::continue_on(ex)); }
