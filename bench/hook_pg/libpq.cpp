// Queries by libpq's blocking calls: `bench_hook_pg hooks|threads DIRECTORY CONNECTIONS QUERIES`. Each connection makes so many
// short queries, one after the other: in fibers with hooks on two threads, or on a thread for each connection. Prints, of the
// queries alone, their number a second and the processor time of this process for each; and the memory that it has at their end.
#include <libpq-fe.h>
#include <sys/resource.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>
#include <weft/hook.hpp>
#include <weft/weft.hpp>

namespace {

double processor_time() {
  rusage use;
  ::getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

// In KiB, what this process alone has.
long private_memory() {
  long sum = 0;
  if (std::FILE* const file = std::fopen("/proc/self/smaps_rollup", "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr)
      if (std::strncmp(line, "Private_", 8) == 0 && std::strstr(line, "Hugetlb") == nullptr)
        sum += std::atol(std::strchr(line, ':') + 1);
    std::fclose(file);
  }
  return sum;
}

PGconn* connect(const std::string& server) {
  PGconn* const to = PQconnectdb(server.c_str());
  if (PQstatus(to) != CONNECTION_OK) {
    std::fputs(PQerrorMessage(to), stderr);
    std::exit(1);
  }
  return to;
}
void ask(PGconn* to, int queries) {
  for (int i = 0; i != queries; ++i) {
    PGresult* const got = PQexec(to, "select 42");
    if (PQresultStatus(got) != PGRES_TUPLES_OK || std::atoi(PQgetvalue(got, 0, 0)) != 42) {
      std::fputs(PQerrorMessage(to), stderr);
      std::exit(1);
    }
    PQclear(got);
  }
}

struct figures {
  double begun_at = 0, processor = 0;
  void begin() {
    processor = processor_time();
    begun_at = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  void end(int count) const {
    const double took =
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count() - begun_at;
    std::printf("%.0f queries/s, %.2f us each of processor time, %ld KiB\n", count / took,
                1e6 * (processor_time() - processor) / count, private_memory());
  }
};

void by_hooks(const std::string& server, int connections, int queries) {
  // Of one thread each, since a fiber stays on its thread: so what wakes it is found there.
  weft::runtime both[] = {weft::runtime{{.threads = 1}}, weft::runtime{{.threads = 1}}};
  std::vector<PGconn*> those(static_cast<std::size_t>(connections));
  const auto each = [&](auto what) {
    const auto half = [&](unsigned which) -> weft::task<> {
      const auto body = [&](weft::scope& all) -> weft::task<> {
        for (std::size_t i = which; i < those.size(); i += 2) all.fork(weft::hooked(what, &those[i]));
        co_return;
      };
      co_await weft::with_scope({.executor = &both[which].workers().worker(0)}, body);
    };
    std::jthread other{[&] { both[1].run(half(1)); }};
    both[0].run(half(0));
  };
  each([&](PGconn** one) { *one = connect(server); });
  figures all;
  all.begin();
  each([&](PGconn** one) { ask(*one, queries); });
  all.end(connections * queries);
  for (PGconn* const one : those) PQfinish(one);
}

void by_threads(const std::string& server, int connections, int queries) {
  figures all;
  std::barrier connected{connections, [&all]() noexcept { all.begin(); }};
  std::barrier done{connections, [&]() noexcept { all.end(connections * queries); }};
  std::vector<std::jthread> threads;
  for (int i = 0; i != connections; ++i)
    threads.emplace_back([&] {
      PGconn* const mine = connect(server);
      connected.arrive_and_wait();
      ask(mine, queries);
      done.arrive_and_wait();
      PQfinish(mine);
    });
}

}  // namespace

int main(int argc, char** arguments) {
  if (argc != 5) return std::fputs("usage: bench_hook_pg hooks|threads DIRECTORY CONNECTIONS QUERIES\n", stderr), 2;
  const std::string server = std::string{"dbname=postgres user=postgres host="} + arguments[2];
  const int connections = std::atoi(arguments[3]), queries = std::atoi(arguments[4]);
  (std::strcmp(arguments[1], "hooks") == 0 ? by_hooks : by_threads)(server, connections, queries);
}
