// expect: deleted|use of deleted function
#include <weft/io.hpp>

weft::io::pipe_reader twice(const weft::io::pipe_reader& from) { return from; }
