// file_read, file_read_direct, file_read_stream: a file is read piece by piece. One item is a read, and its time the processor time
// of the process that reads, the system's work for it included. --size is how many are under way at once.
//
// The programs are given as servers are, see harness/net/server.hpp: THREADS BYTES AT-ONCE PATH KIND FILE-BYTES. Each is told over
// one connection how many reads to do, as eight bytes, and says how many gave what is there.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../harness/net/client.hpp"

namespace bench {

/// A file whose pieces of 4 KiB begin with their numbers; in the page cache, and on the disk. In $WEFT_BENCH_FILES, or /var/tmp.
class numbered_file {
 public:
  explicit numbered_file(std::uint64_t size) {
    const char* const where = std::getenv("WEFT_BENCH_FILES");
    path_ = std::string{where != nullptr ? where : "/var/tmp"} + "/weft-bench-XXXXXX";
    const int number = ::mkostemp(path_.data(), O_CLOEXEC);
    if (number < 0) throw not_here{"no file can be made there"};
    std::vector<char> piece(std::size_t{1} << 20);
    for (std::uint64_t at = 0; at != size; at += piece.size()) {
      for (std::size_t i = 0; i != piece.size(); i += 4096) {
        const std::uint64_t mine = (at + i) / 4096;
        std::memcpy(&piece[i], &mine, sizeof mine);
      }
      if (::write(number, piece.data(), piece.size()) != static_cast<ssize_t>(piece.size()))
        throw not_here{"the disk has no room for such a file"};
    }
    ::fsync(number);
    ::close(number);
  }
  numbered_file(const numbered_file&) = delete;
  ~numbered_file() { ::unlink(path_.c_str()); }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

inline void run_reads(state& state, std::size_t bytes, const char* kind, std::uint64_t reads) {
  const std::uint64_t size = std::uint64_t{state.full() ? 256U : 32U} << 20;
  const numbered_file all{size};
  const server_process server{
      state, {"1", std::to_string(bytes), std::to_string(state.size()), all.path(), kind, std::to_string(size)}};
  const connection to{server};
  state.measure(static_cast<double>(reads), reads, [&] {
    to.send(&reads, sizeof reads);
    std::uint64_t right = 0;
    to.receive(&right, sizeof right);
    return right;
  });
  state.report("own KiB", static_cast<double>(server.own_bytes()) / 1024);
}

}  // namespace bench
