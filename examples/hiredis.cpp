// A client of Redis, by hiredis: `example_hiredis PATH`, where PATH is the Unix socket of a redis-server. Shows commands one
// after the other, a thousand in one pipeline, one that is given up, and a server that ends and is started again. What makes
// hiredis awaitable is in hiredis.hpp.
#include "hiredis.hpp"

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::literals;

std::string text_of(const hiredis::reply& from) {
  switch (from.type) {
    case REDIS_REPLY_NIL: return "(nil)";
    case REDIS_REPLY_INTEGER: return std::to_string(from.number);
    default: return from.text;
  }
}

w::task<> session(hiredis::client& redis, hiredis::client& other) {
  std::printf("%s\n", text_of(co_await redis.command("PING")).c_str());
  co_await redis.command("SET", "greeting", "hello");
  std::printf("stored: %s\n", text_of(co_await redis.command("GET", "greeting")).c_str());

  std::vector<w::future<hiredis::reply>> pipeline;
  for (int i = 0; i != 1000; ++i) pipeline.push_back(redis.send("INCR", "count"));
  long long in_order = 0;
  for (auto& one : pipeline)
    if ((co_await std::move(one)).number == in_order + 1) ++in_order;
  std::printf("%lld increments in one pipeline, in order\n", in_order);

  // The server answers the commands of a connection in their order, so what is behind this one waits for its reply, too, which
  // nobody wants any more.
  auto in_time = w::as_result(w::timeout(50ms, redis.command("BLPOP", "queue", "0")));
  const auto none = co_await std::move(in_time);
  std::printf("BLPOP: %s\n", none.error() == w::errc::timed_out ? "given up" : "has an answer");
  auto behind = redis.send("GET", "count");
  co_await other.command("LPUSH", "queue", "x");
  std::printf("behind it: %s\n", text_of(co_await std::move(behind)).c_str());

  const auto ended = co_await w::as_result(redis.send("SHUTDOWN", "NOSAVE"));
  std::printf("SHUTDOWN: %s\n", ended.error() == w::errc::closed ? "the connection has ended" : "has an answer");
  std::printf("connected again: %s\n", text_of(co_await redis.command("PING")).c_str());
  std::printf("what it knows: %s\n", text_of(co_await redis.command("GET", "greeting")).c_str());
}

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "example_hiredis PATH\n");
    return 2;
  }
  hiredis::client redis{arguments[1]}, other{arguments[1]};
  return w::run_main(w::when_any(session(redis, other), redis.run(), other.run()), {.threads = 1});
}
