// A chat: `example_chat 7777`, then several of `nc 127.0.0.1 7777`. The first line is a name; each line after it goes to all
// others. It ends at Ctrl-C.
//
// Nobody waits for a client that is slow. What is said goes into one ring, out of which each client is written to by a task of
// its own; one that is 256 lines behind, or takes nothing for a minute, is told so, if it still listens, and dropped.
#include <atomic>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::literals;

struct message {
  int from;
  std::string text;
};
using room = w::broadcast<std::shared_ptr<const message>>;

w::task<> say(room& all, int from, std::string text) {
  auto what = std::make_shared<const message>(message{from, std::move(text)});
  co_await all.send(std::move(what));  // which does not wait, as the room drops who is slow
}

// Writes to a client what the others say.
w::task<> hear(const w::net::stream& peer, room::receiver all, int self) {
  while (const auto next = co_await all.receive())
    if ((*next)->from != self) co_await w::timeout(1min, peer.write((*next)->text));
}

// Tells the others what a client says, until it leaves.
w::task<> speak(w::io::buffered_reader<const w::net::stream&>& in, room& all, int self, std::string name) {
  auto lines = in.lines(1000);
  while (const std::string* line = co_await lines.next()) co_await say(all, self, name + ": " + *line + "\n");
}

w::task<> take_part(const w::net::stream& peer, room& all, int self) {
  w::io::buffered_reader in{peer};
  const auto name = co_await in.read_line(20);
  if (!name) co_return;
  auto mine = all.subscribe();  // it hears what is said from now on
  co_await say(all, self, "* " + *name + " is here\n");
  co_await peer.write("welcome, " + *name + "\n");  // who comes when it has this hears nothing of its coming

  auto both = w::when_any(hear(peer, std::move(mine), self), speak(in, all, self, *name));
  const auto ended = co_await w::as_result(std::move(both));
  co_await say(all, self, "* " + *name + " has left\n");
  try {
    if (!ended.is_stopped()) static_cast<void>(ended.value());
    co_return;
  } catch (const w::receiver_too_slow&) {  // below, as a handler can't wait
  }
  co_await w::timeout(1min, peer.write("* you are too slow\n"sv));
}

w::task<> serve(std::uint16_t port) {
  w::net::listener at = co_await w::net::listen(w::net::endpoint{"127.0.0.1", port});
  std::printf("listening on %s\n", at.local().to_string().c_str());
  std::fflush(stdout);
  room all{{.capacity = 256, .slow = w::slow_receiver::end}};
  std::atomic<int> next{0};  // handlers run at once, on several threads
  const auto handle = [&](w::net::stream peer) -> w::task<> {
    peer.set_send_buffer(16 * 1024);  // what waits for a client waits in the room rather
    co_await take_part(peer, all, next++);
  };
  co_await w::net::serve({.grace = 1s}, std::move(at), handle);
}

int main(int count, char** arguments) {
  std::uint16_t port = 0;  // 0: the system chooses one
  if (count > 1) {
    const std::string_view text = arguments[1];
    std::from_chars(text.data(), text.data() + text.size(), port);
  }
  return w::run_main(w::when_any(serve(port), w::interrupted()));
}
