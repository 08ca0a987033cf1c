// Parses WEFT_OBSERVE, a list of words separated by commas:
//
//     socket                 answers on the Unix socket
//     http  http=9900        answers by HTTP, too: on any free port, or on this one
//     dir=/run/me/weft       where the socket is, in place of $XDG_RUNTIME_DIR/weft
//     token_file=/etc/t      the token of HTTP requests, in place of a random one
//     dump=SIGUSR2           writes a dump on this signal
//     dump_to=/var/log/d     writes dumps there, in place of stderr
//     stall=50ms             reports what holds up a worker for so long
//     trace=/var/tmp/r.weft  writes the flight recorder's events there at a crash, and when a deadlock is found
//     deadlocks=off          does not look for deadlocks each second
#pragma once

#include <string>
#include <string_view>
#include <weft/observer.hpp>

namespace weft::detail {

struct asked_observer {
  observer_options options;  ///< its texts are those below
  std::string directory, token_file, dump_file, trace_file;
  std::string error;  ///< a sentence about a word that is not understood; empty: there is none

  observer_options complete() const noexcept {
    observer_options all = options;
    if (!directory.empty()) all.directory = directory.c_str();
    if (!token_file.empty()) all.token_file = token_file.c_str();
    if (!dump_file.empty()) all.dump_file = dump_file.c_str();
    return all;
  }
};

asked_observer parse_observe(std::string_view text);

}  // namespace weft::detail
