// Many queries at once on two threads, by libpq's blocking calls, in fibers whose calls are hooked:
// `example_hook_pg DIRECTORY COUNT`, where the Unix socket of a PostgreSQL server is in DIRECTORY. Each of COUNT queries waits for
// a lock in the server, which another session gives up as soon as the server says that all wait.
#include <libpq-fe.h>
#include <unistd.h>

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

// These know nothing of weft.
[[noreturn]] void fail(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::_Exit(1);
}
connection connect(const std::string& server) {
  connection to{PQconnectdb(server.c_str())};
  if (PQstatus(to.get()) != CONNECTION_OK) fail(PQerrorMessage(to.get()));
  return to;
}
int ask(const connection& to, const std::string& query) {
  const answer got{PQexec(to.get(), query.c_str())};
  if (PQresultStatus(got.get()) != PGRES_TUPLES_OK) fail(PQerrorMessage(to.get()));
  return std::atoi(PQgetvalue(got.get(), 0, 0));
}
int ask_behind_lock(const std::string& server, int number) {
  return ask(connect(server), "select " + std::to_string(number) + " + 1 from pg_advisory_lock_shared(1)");
}
void unlock_when_all_wait(const connection& holder, int count) {
  while (ask(holder, "select count(*) from pg_locks where locktype = 'advisory' and not granted") != count)
    ::usleep(10'000);
  ask(holder, "select pg_advisory_unlock(1)");
}

w::task<int> ask_on(w::executor& worker, const std::string& server, int count) {
  int right = 0;
  auto body = [&](w::scope& queries) -> w::task<> {
    for (int i = 0; i != count; ++i)
      queries.fork(w::hooked(
          [&server, &right, i] { right += ask_behind_lock(server, i) == i + 1 ? 1 : 0; }));  // all on one thread
    co_return;
  };
  co_await w::with_scope({.executor = &worker}, body);
  co_return right;
}
w::task<> unlock_on(w::executor& worker, const connection& holder, int count) {
  auto body = [&](w::scope& one) -> w::task<> {
    one.fork(w::hooked([&] { unlock_when_all_wait(holder, count); }));
    co_return;
  };
  co_await w::with_scope({.executor = &worker}, body);
}

int main(int argc, char** arguments) {
  if (argc != 3) return std::fputs("usage: example_hook_pg DIRECTORY COUNT\n", stderr), 2;
  const std::string server = std::string{"dbname=postgres user=postgres host="} + arguments[1];
  const int count = std::atoi(arguments[2]);
  const connection holder = connect(server);
  ask(holder, "select 1 from pg_advisory_lock(1)");
  w::runtime rt{{.threads = 2}};
  w::executor &one = rt.workers().worker(0), &other = rt.workers().worker(1);
  const auto [first, second, unlocked] = rt.run(w::when_all(
      ask_on(one, server, count / 2), ask_on(other, server, count - count / 2), unlock_on(other, holder, count)));
  std::printf("%s\n", first + second == count ? "all waited at once, and each got its own" : "an answer is wrong");
}
