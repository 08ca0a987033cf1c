// expect: a cleanup gives nothing, for nobody could take it
#include <weft/on_scope_exit.hpp>
#include <weft/task.hpp>

weft::task<int> one();
weft::task<> asks() { co_await weft::on_scope_exit(one()); }
