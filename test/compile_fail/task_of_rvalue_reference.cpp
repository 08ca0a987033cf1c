// expect: a task can't return an rvalue reference: return a value
#include <weft/task.hpp>

weft::task<int&&> moved();

int main() { auto t = moved(); }
