// file_write, file_write_sync, file_write_stream: a file is written piece by piece. One item is a write, and its time the processor
// time of the process that writes, the system's work for it included. --size is how many are under way at once.
//
// The programs are given as servers are, see harness/net/server.hpp: THREADS BYTES AT-ONCE PATH KIND FILE-BYTES. Each is told over
// one connection how many writes to do, as eight bytes, and says how many were whole. The file is there before, so that no write
// makes it longer. A piece begins with the number of its write, by which the client sees that the last ones are there.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "../file_read/client.hpp"

namespace bench {

inline void run_writes(state& state, std::size_t bytes, const char* kind, std::uint64_t writes) {
  const std::uint64_t size = std::uint64_t{state.full() ? 256U : 32U} << 20;
  const numbered_file all{size};
  const server_process server{
      state, {"1", std::to_string(bytes), std::to_string(state.size()), all.path(), kind, std::to_string(size)}};
  const connection to{server};
  const std::uint64_t blocks = size / bytes;
  const bool in_order = std::string{kind} == "stream";
  // Of several at once, one that is held up may be made behind a later one of the same block.
  const auto may_be_there = [&](std::uint64_t found, std::uint64_t newest) {
    return found == newest || (state.size() > 1 && found < newest && (newest - found) % blocks == 0);
  };
  state.measure(static_cast<double>(writes), writes, [&] {
    to.send(&writes, sizeof writes);
    std::uint64_t right = 0;
    to.receive(&right, sizeof right);
    const int number = ::open(all.path().c_str(), O_RDONLY | O_CLOEXEC);
    for (std::uint64_t i = writes - std::min<std::uint64_t>(writes, 16); i != writes; ++i) {
      const std::uint64_t block = (in_order ? i : i * 2654435761) % blocks;
      std::uint64_t found = ~i;
      if (::pread(number, &found, sizeof found, static_cast<off_t>(block * bytes)) != sizeof found ||
          !may_be_there(found, i))
        --right;
    }
    ::close(number);
    return right;
  });
}

}  // namespace bench
