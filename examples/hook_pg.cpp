// Many queries at once on two threads, by libpq's blocking calls, in fibers whose calls are hooked:
// `example_hook_pg DIRECTORY COUNT`, where the Unix socket of a PostgreSQL server is in DIRECTORY. Each query sleeps half a second
// in the server: one after the other they would take COUNT halves.
#include <libpq-fe.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <weft/hook.hpp>
#include <weft/weft.hpp>

namespace w = weft;

struct finish {
  void operator()(PGconn* one) const { PQfinish(one); }
  void operator()(PGresult* one) const { PQclear(one); }
};
using connection = std::unique_ptr<PGconn, finish>;
using answer = std::unique_ptr<PGresult, finish>;

// Knows nothing of weft.
int ask(const std::string& server, int number) {
  const connection to{PQconnectdb(server.c_str())};
  if (PQstatus(to.get()) != CONNECTION_OK) return std::fputs(PQerrorMessage(to.get()), stderr), 0;
  const std::string query = "select " + std::to_string(number) + " + 1 from pg_sleep(0.5)";
  const answer got{PQexec(to.get(), query.c_str())};
  if (PQresultStatus(got.get()) != PGRES_TUPLES_OK) return std::fputs(PQerrorMessage(to.get()), stderr), 0;
  return std::atoi(PQgetvalue(got.get(), 0, 0)) == number + 1 ? 1 : 0;
}

w::task<int> ask_on(w::executor& worker, const std::string& server, int count) {
  int right = 0;
  auto body = [&](w::scope& queries) -> w::task<> {
    for (int i = 0; i != count; ++i)
      queries.fork(w::hooked([&server, &right, i] { right += ask(server, i); }));  // all on one thread
    co_return;
  };
  co_await w::with_scope({.executor = &worker}, body);
  co_return right;
}

int main(int argc, char** arguments) {
  if (argc != 3) return std::fputs("usage: example_hook_pg DIRECTORY COUNT\n", stderr), 2;
  const std::string server = std::string{"dbname=postgres user=postgres host="} + arguments[1];
  const int count = std::atoi(arguments[2]);
  w::runtime rt{{.threads = 2}};
  const auto begun = std::chrono::steady_clock::now();
  const auto [first, second] = rt.run(w::when_all(ask_on(rt.workers().worker(0), server, count / 2),
                                                  ask_on(rt.workers().worker(1), server, count - count / 2)));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::printf("%s\n", first + second == count ? "all answers are right" : "an answer is wrong");
  std::printf("%s\n", took.count() < count / 4. ? "at once" : "one after the other");
  std::fprintf(stderr, "%d queries of half a second on two threads: %.2f s\n", count, took.count());
}
