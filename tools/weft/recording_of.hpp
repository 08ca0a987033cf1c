// What a process has in its flight recorder, as a file of it: what weft::save_recording() would write there. See recorder.hpp
// and recording.hpp of the library.
#pragma once

#include <cstddef>
#include <vector>

namespace weft_tool {

class target;

struct recorded {
  std::vector<std::byte> file;
  bool is_complete = true;  // false: some of it could not be read
};

/// Throws problem: where nothing in the target uses weft, or it is of another version, or its recorder is switched off.
recorded recording_of(const target& in);

}  // namespace weft_tool
