// expect-warning: a task does nothing until it is awaited
#include <weft/scope.hpp>

weft::task<> work();

void forks(weft::scope& s) { s.fork_when_room(work()); }
