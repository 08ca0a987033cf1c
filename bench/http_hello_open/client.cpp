// http_hello_open: the requests of http_hello, but sent when it is time for them (harness/net/open_loop.hpp); each connection
// sends in its turn, whether or not it has the answers of earlier ones. One item is a request, and its time the server's
// processor time for it. Reported besides: how long answers take, and the client's processor time for a request.
//
// --rate says how many requests there are in a second, and is found as for tcp_pingpong_open. --size is the number of connections.
// The servers are those of http_hello, with one thread.
#include <cstddef>
#include <string_view>

#include "../harness/net/in_turns.hpp"
#include "../http_hello/hello_server.hpp"

namespace {

class asker {
 public:
  asker(const bench::hello_server& server, std::size_t number)
      : at_{server, number}, bytes_{server.answer_bytes()}, answers_{bytes_} {}

  int socket() const noexcept { return at_.socket(); }
  void send_next() const { at_.send(bench::hello_request.data(), bench::hello_request.size()); }
  std::size_t receive(std::size_t most = 1) {
    return answers_.receive(at_.socket(), most, [&](const char* answer) {
      if (!bench::says_hello({answer, bytes_})) throw bench::wrong_result{"an answer does not say hello"};
    });
  }

 private:
  bench::connection at_;
  std::size_t bytes_;
  bench::equal_answers<1024> answers_;
};

}  // namespace

void bench::run(state& state) {
  const std::size_t count = state.size();
  need_descriptors(count);
  const processors where = find_processors();
  stay_on(where.server);  // which it inherits
  const hello_server server{state, 1, count};
  stay_on(where.client);
  players_of<asker> all{server, count};
  play_in_turns(state, server, all, state.option("--rate", 0));
}
