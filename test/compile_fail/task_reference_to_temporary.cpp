// expect[clang]: call to deleted member function 'return_value'
// expect[gcc]: use of deleted function .*return_value
#include <weft/task.hpp>

weft::task<const long&> gives_a_temporary() { co_return 1; }
