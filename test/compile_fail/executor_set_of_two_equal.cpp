// expect: an executor_set has one executor of each type: give the second one a type of its own
#include <weft/executor_set.hpp>

weft::manual_executor one, other;
weft::executor_set both{one, other};

int main() {}
