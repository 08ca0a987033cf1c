// expect: sync_wait
// expect[clang]: constraints not satisfied|'awaitable'
// expect[gcc]: the required expression|constraints not satisfied
#include <weft/task.hpp>

int main() { return weft::sync_wait(1); }
