// What WEFT_OBSERVE asks for, in words that commas separate:
//
//     socket                 answers on the Unix socket
//     http  http=9900        answers by HTTP, too: on a port that is free, or on this one
//     dir=/run/me/weft       where the socket is, in place of $XDG_RUNTIME_DIR/weft
//     token_file=/etc/t      the token of HTTP requests, in place of a random one
//     dump=SIGUSR2           this signal has a dump written
//     dump_to=/var/log/d     there, in place of stderr
//     stall=50ms             blames what holds up a worker for so long
//     trace=/var/tmp/r.weft  what was recorded last is written there at a crash, and where a deadlock is found
//     deadlocks=off          does not look for deadlocks each second
#pragma once

#include <string>
#include <string_view>
#include <weft/observer.hpp>

namespace weft::detail {

struct asked_observer {
  observer_options options;  ///< its texts are those below
  std::string directory, token_file, dump_file, trace_file;
  std::string error;  ///< a sentence, where a word is not understood; empty: none

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
