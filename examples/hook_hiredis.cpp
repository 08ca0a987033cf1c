// Many commands at once on two threads, by Hiredis' blocking calls, in fibers whose calls are hooked:
// `example_hook_hiredis PATH COUNT`, where PATH is the Unix socket of a redis-server. Each of COUNT fibers waits for a list of its own,
// and one fills the lists as soon as the server says that all wait.
#include <hiredis/hiredis.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <weft/hook.hpp>
#include <weft/weft.hpp>

namespace w = weft;

struct gone {
  void operator()(redisContext* one) const { redisFree(one); }
  void operator()(redisReply* one) const { freeReplyObject(one); }
};
using connection = std::unique_ptr<redisContext, gone>;
using reply = std::unique_ptr<redisReply, gone>;

connection connect(const std::string& path) {
  connection to{redisConnectUnix(path.c_str())};
  if (!to || to->err != 0) throw std::runtime_error{to ? to->errstr : "no memory"};
  return to;
}
reply command(const connection& to, const char* what, int number) {
  reply got{static_cast<redisReply*>(redisCommand(to.get(), what, number, number))};
  if (!got || got->type == REDIS_REPLY_ERROR) throw std::runtime_error{got ? got->str : to->errstr};
  return got;
}

long long take(const std::string& path, int number) {
  return std::atoi(command(connect(path), "BLPOP queue:%d 0", number)->element[1]->str);
}
void fill(const std::string& path, int count) {
  const connection to = connect(path);
  const std::string all = "blocked_clients:" + std::to_string(count) + "\r";
  while (std::strstr(command(to, "INFO clients", 0)->str, all.c_str()) == nullptr) ::usleep(1000);
  for (int i = 0; i != count; ++i) command(to, "RPUSH queue:%d %d", i);
}

w::task<long long> take_on(w::executor& worker, const std::string& path, int from, int to) {
  long long sum = 0;
  auto body = [&](w::scope& all) -> w::task<> {
    for (int i = from; i != to; ++i)
      all.fork(w::hooked([&path, &sum, i] { sum += take(path, i); }));  // all on one thread
    co_return;
  };
  co_await w::with_scope({.executor = &worker}, body);
  co_return sum;
}
w::task<> fill_on(w::executor& worker, const std::string& path, int count) {
  auto body = [&](w::scope& one) -> w::task<> {
    one.fork(w::hooked([&] { fill(path, count); }));
    co_return;
  };
  co_await w::with_scope({.executor = &worker}, body);
}

int main(int argc, char** arguments) {
  if (argc != 3) return std::fputs("usage: example_hook_hiredis PATH COUNT\n", stderr), 2;
  const std::string path = arguments[1];
  const int count = std::atoi(arguments[2]);
  w::runtime rt{{.threads = 2}};
  w::executor &one = rt.workers().worker(0), &other = rt.workers().worker(1);
  const auto [first, second, filled] = rt.run(w::when_all(
      take_on(one, path, 0, count / 2), take_on(other, path, count / 2, count), fill_on(other, path, count)));
  std::printf("%s\n", first + second == (count - 1LL) * count / 2 ? "all waited at once, and each got its own"
                                                                  : "an answer is wrong");
}
