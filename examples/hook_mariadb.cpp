// Many queries at once on two threads, by libmariadb's blocking calls, in fibers whose calls are hooked:
// `example_hook_mariadb PATH COUNT`, where PATH is the Unix socket of a mariadbd. Each of COUNT queries waits for a lock
// in the server, which another session gives up as soon as the server says that all wait.
#include <mariadb/mysql.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <weft/hook.hpp>
#include <weft/weft.hpp>

namespace w = weft;

struct gone {
  void operator()(MYSQL* one) const { mysql_close(one); }
  void operator()(MYSQL_RES* one) const { mysql_free_result(one); }
};
using connection = std::unique_ptr<MYSQL, gone>;
using answer = std::unique_ptr<MYSQL_RES, gone>;

// These know nothing of weft.
[[noreturn]] void fail(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::_Exit(1);
}
connection connect(const std::string& path) {
  connection to{mysql_init(nullptr)};
  if (mysql_real_connect(to.get(), nullptr, "root", nullptr, nullptr, 0, path.c_str(), 0) == nullptr)
    fail(mysql_error(to.get()));
  return to;
}
int ask(const connection& to, const std::string& query) {
  if (mysql_query(to.get(), query.c_str()) != 0) fail(mysql_error(to.get()));
  const answer got{mysql_store_result(to.get())};
  return std::atoi(mysql_fetch_row(got.get())[0]);
}
int ask_behind_lock(const std::string& path, int number) {  // each gives it to the next one
  return ask(connect(path), "select " + std::to_string(number) + " + get_lock('door', 1000) * release_lock('door')");
}
void unlock_when_all_wait(const connection& holder, int count) {
  while (ask(holder, "select count(*) from information_schema.processlist where state = 'User lock'") != count)
    ::usleep(10'000);
  ask(holder, "select release_lock('door')");
}

w::task<int> ask_on(w::executor& worker, const std::string& path, int count) {
  int right = 0;
  auto body = [&](w::scope& queries) -> w::task<> {
    for (int i = 0; i != count; ++i)
      queries.fork(
          w::hooked([&path, &right, i] { right += ask_behind_lock(path, i) == i + 1 ? 1 : 0; }));  // all on one thread
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
  if (argc != 3) return std::fputs("usage: example_hook_mariadb PATH COUNT\n", stderr), 2;
  const std::string path = arguments[1];
  const int count = std::atoi(arguments[2]);
  mysql_library_init(0, nullptr, nullptr);
  {
    const connection holder = connect(path);
    ask(holder, "select get_lock('door', 0)");
    w::runtime rt{{.threads = 2}};
    w::executor &one = rt.workers().worker(0), &other = rt.workers().worker(1);
    const auto [first, second, unlocked] = rt.run(w::when_all(
        ask_on(one, path, count / 2), ask_on(other, path, count - count / 2), unlock_on(other, holder, count)));
    std::printf("%s\n", first + second == count ? "all waited at once, and each got its own" : "an answer is wrong");
  }
  mysql_library_end();
}
