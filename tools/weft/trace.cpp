#include "trace.hpp"

#include <exception>
#include <ostream>
#include <weft/recording.hpp>

namespace weft_tool {

int trace(std::span<const std::string> arguments, std::ostream& out, std::ostream& err) {
  if (arguments.size() != 1 || arguments[0].starts_with("--")) {
    err << "usage: weft trace FILE > trace.json\n"
           "FILE is what save_recording() has written, or a crash. Open trace.json in https://ui.perfetto.dev or "
           "about:tracing.\n";
    return 2;
  }
  try {
    const weft::recording all = weft::recording::read(arguments[0].c_str());
    if (!all.is_whole()) err << "weft trace: " << arguments[0] << " was not written to its end\n";
    all.write_chrome_trace(out);
    out.flush();
    if (out) return 0;
    err << "weft trace: the output can't be written\n";
  } catch (const std::exception& refused) {
    err << "weft trace: " << refused.what() << '\n';
  }
  return 1;
}

}  // namespace weft_tool
