// In the clock: what the server's process does in a second of wrk, its accepting 20 connections included.
#include <array>
#include <cstdio>
#include <string>

#include "hello_server.hpp"

namespace {

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
  const hello_server server{state, state.size(), 20};
  server.settle();
  const auto before = server.processor_time();
  const double requests = requests_in(run_wrk(server));
  server.settle();
  const std::chrono::duration<double, std::nano> used = server.processor_time() - before;
  state.measured(used.count() / requests);
  state.report("requests in a second", requests);
}
