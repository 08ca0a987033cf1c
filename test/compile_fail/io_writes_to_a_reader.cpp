// expect: does not satisfy 'writer'|does not satisfy ‘writer’|constraints? .*writer
#include <weft/io.hpp>

void buffers(weft::io::pipe_reader& from) { weft::io::buffered_writer<weft::io::pipe_reader&> out{from}; }
