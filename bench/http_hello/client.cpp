// In the clock: what the server's process does in a second of wrk, its accepting 20 connections included.
#include <stdlib.h>  // mkdtemp

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "../harness/net/client.hpp"
#include "../harness/net/server.hpp"

namespace {

constexpr std::string_view body = "Hello, world\n";

/// For a server that needs one: BYTES and CONNECTIONS are followed by its path.
class temporary_folder {
 public:
  temporary_folder() : path_{(std::filesystem::temp_directory_path() / "weft-bench-XXXXXX").native()} {
    if (::mkdtemp(path_.data()) == nullptr) throw bench::wrong_result{"a temporary folder can't be made"};
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// Whether the server answers as it should.
void try_once(const bench::server_process& server) {
  const bench::connection to{server};
  constexpr std::string_view request = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  to.send(request.data(), request.size());
  std::string answer;
  while (!answer.ends_with(body)) {
    char next = 0;
    to.receive(&next, 1);
    answer += next;
    if (answer.size() > 1000) break;
  }
  if (!answer.starts_with("HTTP/1.1 200 ") || !answer.ends_with(body))
    throw bench::wrong_result{"the server does not say hello: " + answer};
}

/// Its whole output.
std::string run_wrk(const bench::server_process& server) {
  const std::string command =
      std::string{BENCH_WRK} + " -t1 -c20 -d1s http://127.0.0.1:" + std::to_string(server.port()) + "/";
  std::FILE* wrk = ::popen(command.c_str(), "re");
  if (wrk == nullptr) throw bench::wrong_result{"wrk can't be started"};
  std::string out;
  std::array<char, 4096> part;
  while (const std::size_t size = std::fread(part.data(), 1, part.size(), wrk)) out.append(part.data(), size);
  if (const int status = ::pclose(wrk); status != 0) throw bench::wrong_result{"wrk has failed"};
  return out;
}

double requests_in(const std::string& out) {
  for (const char* bad : {"Socket errors", "Non-2xx"})
    if (out.find(bad) != out.npos) throw bench::wrong_result{"wrk: " + out.substr(out.find(bad))};
  const std::size_t end = out.find(" requests in ");
  if (end == out.npos) throw bench::wrong_result{"wrk says no number of requests"};
  return std::stod(out.substr(out.rfind('\n', end) + 1));
}

}  // namespace

void bench::run(state& state) {
  const temporary_folder folder;
  server_process server{state, {std::to_string(state.size()), std::to_string(large_buffer), "20", folder.path()}};
  try_once(server);
  server.follow_child();
  server.settle();
  const auto before = server.processor_time();
  const double requests = requests_in(run_wrk(server));
  server.settle();
  const std::chrono::duration<double, std::nano> used = server.processor_time() - before;
  state.measured(used.count() / requests);
  state.report("requests in a second", requests);
}
