// Clients of a soak: `soak_clients ADDRESS PORT CONNECTIONS HOSTILE NET IDLE_MS`. One thread on epoll, without weft, so that a
// bug of weft's can't hide here. So many connections, of which HOSTILE are ill-behaved, come from 127.NET.0.0/16. The others
// send requests, several at once, check each answer to its last byte, think, and now and then begin again with a new
// connection. At SIGUSR1, behind which the server may close connections between two requests, nobody connects any more, and
// those who are connected go on; when all have been closed, it prints what it has counted as lines of `name=value`. Its status
// is 1 where anything was lost or wrong.
//
// On a machine that is slow, or busy with something else, all takes longer, and nothing is lost by that. So a client is done for
// only where the server has meanwhile answered many others. And no more are waiting for the server at once than it answers
// within a second: as TCP does, each slow answer halves their number, and each quick one adds to it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <queue>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "protocol.hpp"

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;
using std::chrono::milliseconds;

// After so many idle timeouts a silent connection is closed. The server looks four times, each of which waits behind what else
// it has to do.
constexpr int idle_ends = 6;
constexpr auto answer_limit = 60s;  // an answer of which no byte comes for so long is lost
// Both only where so many batches of this process's were answered meanwhile: then the server has had the time.
constexpr std::uint64_t work_of_limit = 5000;
constexpr auto end_limit = 10min;  // after which a server that drains hangs
// Batches of a process that wait for their answers, and connections that are begun. Those of all processes are fewer than the
// system keeps connections for the server: what it drops from a full queue is sent again after seconds.
constexpr double most_at_once = 256, least_at_once = 4;
constexpr auto quick_answer = 1s;

enum class kind : std::uint8_t { good, slow, silent, garbage, resetting, half_closing, dripping, deaf };
constexpr std::size_t kinds = 8;
constexpr std::array<const char*, kinds> kind_names{"good",      "slow",         "silent",   "garbage",
                                                    "resetting", "half_closing", "dripping", "deaf"};

enum class phase : std::uint8_t {
  away,         // no connection; the timer begins one
  connecting,   // the timer ends it
  busy,         // waits for answers; the timer is the limit
  thinking,     // the timer sends the next requests
  misbehaving,  // of hostile ones: the timer does the next thing
  leaving       // has sent its end, or waits for the server's; the timer is the limit
};

volatile std::sig_atomic_t is_ending = 0;

struct settings {
  sockaddr_in server{};
  std::size_t connections = 0, hostile = 0;
  unsigned net = 1;
  milliseconds idle{0};
};

struct totals {
  std::uint64_t connected = 0, requests = 0, answers = 0, other_answers = 0, bytes = 0, wrong = 0, lost = 0, unread = 0;
  std::uint64_t not_closed = 0, refused = 0, late = 0;
  std::array<std::uint64_t, kinds> rounds{};
};

class clients {
 public:
  explicit clients(const settings& given)
      : given_{given}, set_{::epoll_create1(EPOLL_CLOEXEC)}, all_(given.connections) {
    for (std::size_t i = 0; i != all_.size(); ++i) {
      one& it = all_[i];
      it.index = static_cast<std::uint32_t>(i);
      it.is = i < given.hostile ? static_cast<kind>(1 + (i + given.net) % (kinds - 1)) : kind::good;
      set_timer(it, up_to(2000ms));
    }
  }
  clients(const clients&) = delete;
  ~clients() { ::close(set_); }

  void run() {
    std::array<epoll_event, 512> events;
    while (!is_over()) {
      const int got = ::epoll_wait(set_, events.data(), static_cast<int>(events.size()), until_next_timer());
      for (int i = 0; i < got; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        one& it = all_[event.data.u64 & 0xffff'ffff];
        if (it.generation == event.data.u64 >> 32) handle(it, event.events);
      }
      fire_timers();
      give_places();
    }
  }

  bool report() const {
    const auto print = [](const char* name, std::uint64_t value) {
      std::printf("%s=%llu\n", name, static_cast<unsigned long long>(value));
    };
    print("connected", count_.connected);
    print("requests", count_.requests);
    print("answers", count_.answers);
    print("other_answers", count_.other_answers);
    print("answer_bytes", count_.bytes);
    print("wrong", count_.wrong);
    print("lost", count_.lost);
    print("unread", count_.unread);
    print("not_closed", count_.not_closed);
    print("refused", count_.refused);
    print("late", count_.late);
    for (std::size_t i = 1; i != kinds; ++i) print(kind_names[i], count_.rounds[i]);
    return count_.wrong == 0 && count_.lost == 0 && count_.not_closed == 0;
  }

 private:
  struct expected {
    std::uint32_t number, size, sum;
  };
  struct one {
    std::uint32_t index = 0, generation = 0, timer_generation = 0;  // of its socket, of its timer
    int socket = -1;
    kind is = kind::good;
    phase at = phase::away;
    std::uint32_t next_number = 0;
    int batches_left = 0;
    bool has_place = false;  // among those that wait for the server
    std::uint64_t work_before = 0;
    clock_type::time_point sent_at, came_at;  // the last batch, the last bytes
    std::string out;                          // what the socket did not take yet
    std::deque<expected> answers;
    soak::header head{};
    std::size_t have = 0;  // of the answer that comes, its header included
    std::optional<soak::answer_bytes> body;
  };
  struct timer {
    clock_type::time_point due;
    std::uint32_t index, generation;
    friend bool operator>(const timer& a, const timer& b) noexcept { return a.due > b.due; }
  };

  // ---- timers

  milliseconds up_to(milliseconds most) {
    return milliseconds{random_() % static_cast<std::uint64_t>(most.count() + 1)};
  }
  void set_timer(one& it, clock_type::duration in) {
    timers_.push({clock_type::now() + in, it.index, ++it.timer_generation});
  }
  int until_next_timer() const {
    if (timers_.empty()) return 100;
    const auto left = std::chrono::ceil<milliseconds>(timers_.top().due - clock_type::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 100));
  }
  void fire_timers() {
    const auto now = clock_type::now();
    while (!timers_.empty() && timers_.top().due <= now) {
      const timer next = timers_.top();
      timers_.pop();
      one& it = all_[next.index];
      if (it.timer_generation == next.generation) on_timer(it);
    }
  }

  void set_limit(one& it, clock_type::duration in) {
    it.work_before = work_;
    set_timer(it, in);
  }
  bool server_had_time(const one& it) const noexcept { return work_ - it.work_before >= work_of_limit; }

  void on_timer(one& it) {
    if ((it.at == phase::connecting || it.at == phase::busy || it.at == phase::leaving) && !server_had_time(it))
      return set_timer(it, 5s);
    switch (it.at) {
      case phase::away:
        if (is_ending == 0) have_place(it);
        return;
      case phase::connecting: give_up(it, "has no connection", count_.lost); return;
      case phase::busy: give_up(it, "has no answer", count_.lost); return;
      case phase::thinking: have_place(it); return;
      case phase::misbehaving: misbehave(it); return;
      case phase::leaving: give_up(it, "was not closed by the server", count_.not_closed); return;
    }
  }

  // ---- places

  // Goes on once there is one.
  void have_place(one& it) {
    if (it.is != kind::good) return begin(it);
    waiting_.push_back({it.index, it.generation});
    give_places();
  }
  void give_places() {
    while (!waiting_.empty() && taken_ < static_cast<int>(places_)) {
      const auto [index, generation] = waiting_.front();
      waiting_.pop_front();
      one& it = all_[index];
      if (it.generation != generation || (it.at == phase::away && is_ending != 0)) continue;
      it.has_place = true;
      ++taken_;
      it.at == phase::away ? begin(it) : send_batch(it);
    }
  }
  void leave_place(one& it) {
    if (std::exchange(it.has_place, false)) --taken_;
  }
  void was_answered(one& it) {
    ++work_;
    const auto now = clock_type::now();
    if (now - it.sent_at <= quick_answer) {
      places_ = std::min(most_at_once, places_ + 1 / places_);
    } else if (now - slowed_at_ > quick_answer) {
      places_ = std::max(least_at_once, places_ / 2);
      slowed_at_ = now;
    }
    leave_place(it);
  }

  // ---- connections

  void begin(one& it) {
    it.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (it.socket < 0) die("socket");
    const int on = 1;
    static_cast<void>(::setsockopt(it.socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on));
    if (it.is == kind::slow || it.is == kind::deaf) {
      const int few = 4096;
      static_cast<void>(::setsockopt(it.socket, SOL_SOCKET, SO_RCVBUF, &few, sizeof few));
    }
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(127U << 24 | given_.net << 16 | (it.index / 250) << 8 | (1 + it.index % 250));
    if (::bind(it.socket, reinterpret_cast<sockaddr*>(&from), sizeof from) != 0) die("bind");
    if (::connect(it.socket, reinterpret_cast<const sockaddr*>(&given_.server), sizeof given_.server) != 0 &&
        errno != EINPROGRESS) {
      ::close(it.socket);
      it.socket = -1;
      leave_place(it);
      ++count_.refused;
      if (is_ending == 0) fail(it, "can't connect", count_.lost);
      return set_timer(it, 1s);
    }
    it.came_at = clock_type::now();
    it.at = phase::connecting;
    it.next_number = 0;
    it.batches_left = 1 + static_cast<int>(random_() % 8);
    it.have = 0;
    it.body.reset();
    epoll_event wanted{.events = EPOLLIN | EPOLLOUT | EPOLLET,
                       .data = {.u64 = std::uint64_t{++it.generation} << 32 | it.index}};
    if (::epoll_ctl(set_, EPOLL_CTL_ADD, it.socket, &wanted) != 0) die("epoll_ctl");
    set_limit(it, answer_limit);
  }

  // The next connection begins after a while.
  void close(one& it) {
    leave_place(it);
    if (it.socket >= 0) ::close(it.socket);
    it.socket = -1;
    ++it.generation;
    it.at = phase::away;
    it.answers.clear();
    it.out = {};
    // Hostile ones have no places: they begin as much later as those are fewer, so that they don't fill the listener's queue.
    const auto times = it.is == kind::good || places_ > 64 ? 1 : static_cast<int>(64 / places_);
    set_timer(it, up_to(times * 300ms));
  }

  void reset(one& it) {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    static_cast<void>(::setsockopt(it.socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
    close(it);
  }

  void fail(const one& it, const char* how, std::uint64_t& counter) {
    counter += std::max<std::size_t>(1, it.answers.size());
    if (++told_ > 20) return;
    std::fprintf(stderr, "soak_clients: %s client %u.%u, request %u: %s (%zu answers are missing)\n",
                 kind_names[static_cast<std::size_t>(it.is)], given_.net, it.index, it.next_number, how,
                 it.answers.size());
  }
  void give_up(one& it, const char* how, std::uint64_t& counter) {
    fail(it, how, counter);
    close(it);
  }

  void handle(one& it, std::uint32_t events) {
    if (it.at == phase::connecting) {
      int failed = 0;
      socklen_t size = sizeof failed;
      static_cast<void>(::getsockopt(it.socket, SOL_SOCKET, SO_ERROR, &failed, &size));
      if (failed != 0) {
        ++count_.refused;
        if (failed == ETIMEDOUT && !server_had_time(it))
          ++count_.late;  // the queue of the listener was full all the while
        else if (is_ending == 0)
          fail(it, std::strerror(failed), count_.lost);
        return close(it);
      }
      if ((events & EPOLLOUT) == 0) return;
      ++count_.connected;
      connected(it);
      if (it.socket < 0) return;
    }
    if ((events & EPOLLOUT) != 0 && !it.out.empty() && it.is != kind::dripping) flush(it);
    if (it.socket >= 0 && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && it.is != kind::slow && it.is != kind::deaf)
      read(it);
  }

  void connected(one& it) {
    it.at = phase::busy;
    if (it.is == kind::good) {
      greet(it, soak::counted);
      return send_batch(it);
    }
    ++count_.rounds[static_cast<std::size_t>(it.is)];
    it.at = phase::misbehaving;
    misbehave_first(it);
  }

  // ---- what is sent

  void greet(one& it, char how) {
    constexpr std::array ways{soak::by_task, soak::by_fiber, soak::by_lent_buffers};
    it.out += ways[random_() % ways.size()];
    it.out += how;
  }

  // Most are small; some are larger than what a socket takes at once.
  void add_request(one& it, std::uint32_t payload, std::uint32_t answer) {
    const soak::header head{
        .magic = soak::request_magic, .number = it.next_number++, .size = payload, .checksum = answer};
    it.out.append(reinterpret_cast<const char*>(&head), sizeof head);
    const std::size_t begin = it.out.size();
    it.out.resize(begin + payload);
    for (std::size_t i = begin; i < it.out.size(); i += 8) {
      const std::uint64_t word = random_();
      std::memcpy(it.out.data() + i, &word, std::min<std::size_t>(8, it.out.size() - i));
    }
    soak::checksum sum;
    sum.add(std::as_bytes(std::span{it.out}.subspan(begin)));
    it.answers.push_back({head.number, answer, sum.value()});
    ++(is_counted(it) ? count_.requests : other_requests_);
  }
  void add_some_request(one& it) {
    const auto size = [this](std::uint64_t small, std::uint64_t large) {
      return static_cast<std::uint32_t>(random_() % 200 == 0 ? random_() % large : random_() % small);
    };
    add_request(it, size(512, soak::largest_payload), size(1024, 256 * 1024));
  }

  void send_batch(one& it) {
    for (auto i = 1 + random_() % 4; i != 0; --i) add_some_request(it);
    --it.batches_left;
    it.at = phase::busy;
    it.sent_at = clock_type::now();
    set_limit(it, answer_limit);
    flush(it);
  }

  void flush(one& it) {
    while (!it.out.empty()) {
      const ssize_t size = ::send(it.socket, it.out.data(), it.out.size(), MSG_NOSIGNAL);
      if (size < 0) {
        if (errno == EAGAIN) return;
        return;  // what has come before is still to be read; that says how it has ended
      }
      it.out.erase(0, static_cast<std::size_t>(size));
    }
    it.out = {};
  }

  // ---- what is received

  // Half-closing ones have a right to all answers, too.
  static bool is_counted(const one& it) noexcept { return it.is == kind::good || it.is == kind::half_closing; }

  void read(one& it, std::size_t most = ~std::size_t{0}) {
    std::array<std::byte, 16 * 1024> room;
    while (it.socket >= 0 && most != 0) {
      const ssize_t size = ::recv(it.socket, room.data(), std::min(room.size(), most), 0);
      if (size < 0 && errno == EAGAIN) return;
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return ended(it, size == 0 ? "the server has closed it" : std::strerror(errno));
      most -= static_cast<std::size_t>(size);
      take(it, std::span{room}.first(static_cast<std::size_t>(size)));
    }
  }

  void take(one& it, std::span<const std::byte> some) {
    it.came_at = clock_type::now();
    if (it.at == phase::busy) set_limit(it, answer_limit);
    while (!some.empty()) {
      if (it.answers.empty()) return give_up(it, "has an answer to nothing", count_.wrong);
      const expected& next = it.answers.front();
      std::size_t size = 0;
      if (it.have < sizeof(soak::header)) {
        size = std::min(some.size(), sizeof(soak::header) - it.have);
        std::memcpy(reinterpret_cast<std::byte*>(&it.head) + it.have, some.data(), size);
        if (it.have + size == sizeof(soak::header)) {
          if (it.head.magic != soak::answer_magic || it.head.number != next.number || it.head.size != next.size ||
              it.head.checksum != next.sum)
            return give_up(it, "has an answer to another request", count_.wrong);
          it.body.emplace(next.number, next.sum);
        }
      } else {
        size = std::min(some.size(), sizeof(soak::header) + next.size - it.have);
        if (!it.body->matches(some.first(size))) return give_up(it, "has a wrong answer", count_.wrong);
      }
      some = some.subspan(size);
      it.have += size;
      count_.bytes += size;
      if (it.have == sizeof(soak::header) + next.size) {
        it.have = 0;
        it.answers.pop_front();
        ++(is_counted(it) ? count_.answers : count_.other_answers);
      }
    }
    if (it.answers.empty()) all_answered(it);
  }

  void all_answered(one& it) {
    if (it.is == kind::slow) return close(it);
    if (it.is != kind::good) return;
    was_answered(it);
    if (it.batches_left > 0) {
      it.at = phase::thinking;
      return set_timer(it, up_to(std::min<milliseconds>(10s, given_.idle / 2)));
    }
    if (random_() % 2 == 0) return close(it);
    ::shutdown(it.socket, SHUT_WR);
    it.at = phase::leaving;
    set_limit(it, answer_limit);
  }

  // Whether the server may have taken it for idle, or slow: it was silent for so long by itself, or the server has had no time
  // for what it has sent.
  bool was_late(const one& it) const {
    if (clock_type::now() - it.came_at < given_.idle) return false;
    return it.at == phase::thinking || it.sent_at - it.came_at > given_.idle * 3 / 4 || !server_had_time(it);
  }

  // The server has closed it, or the connection is lost.
  void ended(one& it, const char* how) {
    if (is_ending == 0 && is_counted(it) && it.at != phase::leaving && was_late(it)) {
      ++count_.late;
      count_.unread += it.answers.size();
    } else if (is_counted(it) && !it.answers.empty()) {
      if (is_ending == 0)
        fail(it, how, count_.lost);
      else
        count_.unread += it.answers.size();  // the server has not read them: it counts the answers, too
    } else if (it.is == kind::good && it.at != phase::leaving && is_ending == 0) {
      fail(it, how, count_.lost);
    }
    close(it);
  }

  // ---- hostile ones

  void misbehave_first(one& it) {
    switch (it.is) {
      case kind::good: return;
      case kind::slow:  // reads a large answer in small pieces
        greet(it, soak::not_counted);
        add_request(it, 16, 256 * 1024);
        flush(it);
        return set_timer(it, 50ms);
      case kind::silent: it.at = phase::leaving; return set_limit(it, idle_ends * given_.idle);
      case kind::garbage: {
        for (int i = 0; i != 256; ++i) it.out += static_cast<char>(random_() & 0xff);
        it.at = phase::leaving;
        set_limit(it, idle_ends * given_.idle);
        return flush(it);
      }
      case kind::resetting:  // at any instant: before the greeting, in a request, in an answer
        if (random_() % 4 == 0) return reset(it);
        greet(it, soak::not_counted);
        add_request(it, 400, 64 * 1024);
        it.out.resize(1 + random_() % it.out.size());
        flush(it);
        return set_timer(it, up_to(20ms));
      case kind::half_closing:
        greet(it, soak::counted);
        for (int i = 0; i != 3; ++i) add_some_request(it);
        it.at = phase::misbehaving;
        flush(it);
        return set_timer(it, 1ms);
      case kind::dripping:
        greet(it, soak::not_counted);
        add_request(it, 400, 64);
        it.work_before = work_;
        return misbehave(it);
      case kind::deaf:  // reads nothing of an answer that no buffer holds
        greet(it, soak::not_counted);
        add_request(it, 16, soak::largest_answer);
        flush(it);
        return set_timer(it, 2 * given_.idle);
    }
  }

  void misbehave(one& it) {
    switch (it.is) {
      case kind::slow:
        read(it, 4096);
        if (it.socket >= 0) set_timer(it, 50ms);
        return;
      case kind::resetting: return reset(it);
      case kind::half_closing:
        if (!it.out.empty()) return set_timer(it, 1ms);  // the socket has no room
        ::shutdown(it.socket, SHUT_WR);
        it.at = phase::leaving;
        return set_limit(it, answer_limit);
      case kind::dripping:
        if (it.out.size() > 1) {  // the last byte never goes
          const ssize_t sent = ::send(it.socket, it.out.data(), 1, MSG_NOSIGNAL);
          if (sent == 1) it.out.erase(0, 1);
        }
        if (++it.batches_left > 1200 && server_had_time(it))
          return give_up(it, "drips, and was not cut off", count_.not_closed);
        return set_timer(it, 100ms);
      case kind::deaf: return close(it);
      default: return;
    }
  }

  // ---- the end

  bool is_over() {
    if (is_ending == 0) return false;
    if (ends_at_ == clock_type::time_point{}) {
      ends_at_ = clock_type::now() + end_limit;
      for (one& it : all_) {
        if (it.is != kind::good && it.is != kind::half_closing && it.socket >= 0) close(it);
        if (it.is == kind::dripping) it.out = {};
      }
    }
    const bool is_late = clock_type::now() > ends_at_;
    bool any = false;
    for (one& it : all_) {
      if (it.socket < 0) continue;
      if (is_late) give_up(it, "is still connected when the server has ended", count_.not_closed);
      any = any || it.socket >= 0;
    }
    return !any;
  }

  [[noreturn]] static void die(const char* what) {
    std::perror(what);
    std::exit(2);
  }

  const settings given_;
  int set_;
  std::vector<one> all_;
  std::priority_queue<timer, std::vector<timer>, std::greater<>> timers_;
  std::mt19937_64 random_{given_.net};
  totals count_;
  std::uint64_t other_requests_ = 0;
  std::uint64_t work_ = 0;  // batches that were answered
  // Those that wait for the server, how many there may be, and who waits for that.
  int taken_ = 0;
  double places_ = 64;
  clock_type::time_point slowed_at_{};
  struct place_wanted {
    std::uint32_t index, generation;
  };
  std::deque<place_wanted> waiting_;
  int told_ = 0;
  clock_type::time_point ends_at_{};
};

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 7) {
    std::fprintf(stderr, "soak_clients ADDRESS PORT CONNECTIONS HOSTILE NET IDLE_MS\n");
    return 2;
  }
  const auto number = [&](int which) { return std::strtoul(arguments[which], nullptr, 10); };
  soak::raise_descriptor_limit();
  settings given;
  given.server.sin_family = AF_INET;
  given.server.sin_port = htons(static_cast<std::uint16_t>(number(2)));
  if (::inet_pton(AF_INET, arguments[1], &given.server.sin_addr) != 1) return 2;
  given.connections = number(3);
  given.hostile = number(4);
  given.net = static_cast<unsigned>(number(5));
  given.idle = milliseconds{number(6)};
  struct sigaction ends{};
  ends.sa_handler = [](int) { is_ending = 1; };
  ::sigaction(SIGUSR1, &ends, nullptr);
  clients all{given};
  all.run();
  return all.report() ? 0 : 1;
}
