// expect: after std::allocator_arg, weft takes a std::pmr::memory_resource\* or a polymorphic_allocator
#include <weft/task.hpp>

weft::task<int> number(std::allocator_arg_t, std::allocator<int>) { co_return 1; }

int main() {}
