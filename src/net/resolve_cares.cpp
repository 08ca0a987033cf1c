// Lookups by c-ares: the table of all channels, and the task of a lookup. A channel is explained in name_channel_cares.hpp.
#include <pthread.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>
#include <weft/clock.hpp>
#include <weft/error.hpp>
#include <weft/event.hpp>
#include <weft/hop.hpp>
#include <weft/nothrow.hpp>
#include <weft/select.hpp>

#include "io/io_service.hpp"
#include "net/name_channel_cares.hpp"
#include "net/name_query.hpp"

namespace weft::detail {
namespace {

using net::address_family;
using net::endpoint;
using net::resolve_errc;
using std::chrono::steady_clock;

// ---- all channels ------------------------------------------------------------------------------------------------------------

// A file's identity, size and time of modification, to find out whether the file has changed.
struct file_id {
  dev_t device = 0;
  ino_t number = 0;
  off_t size = -1;  // -1: there is no such file
  std::int64_t seconds = 0, nanoseconds = 0;

  static file_id of(const char* path) noexcept {
    struct stat its;
    if (::stat(path, &its) != 0) return {};
    return {its.st_dev, its.st_ino, its.st_size, its.st_mtim.tv_sec, its.st_mtim.tv_nsec};
  }
  friend bool operator==(const file_id&, const file_id&) = default;
};

// The table of channels: one for each I/O service and each set of options, as long as the table has room.
class channels {
 public:
  std::shared_ptr<name_channel> get(const io_service* service, const name_query::channel_options& options) {
    const clock::time_point now = steady_clock::now();
    const std::lock_guard guard{lock_};
    place* at = nullptr;
    for (place& one : places_)
      if (one.channel != nullptr && one.service == service && one.options == options) at = &one;
    if (at != nullptr && is_current(*at, now)) return at->channel;
    if (at == nullptr) at = free_place();
    if (!has_library_) expect_success(::ares_library_init(ARES_LIB_INIT_ALL), "begin to use c-ares");
    has_library_ = true;
    const auto files = files_of(options);
    auto made = std::make_shared<name_channel>(options);
    if (at == nullptr) return made;
    name_query::channel_options copied = options;
    *at = {made, service, std::move(copied), files, now, now};
    return made;
  }

  static channels& instance() {
    abandon_in_children();
    channels* its = one.load(std::memory_order_acquire);  // <- channels (no model: as declared)
    if (its == nullptr) {
      auto made = std::make_unique<channels>();
      if (one.compare_exchange_strong(its, made.get(),
                                      std::memory_order_acq_rel,   // -> channels (no model: as declared)
                                      std::memory_order_acquire))  // <- channels (no model: as declared)
        its = made.release();
    }
    return *its;
  }

 private:
  // Registers, once, the handler that gives a forked child a table of its own. Not by a function-local static: in a child that is
  // forked during its initialization, the guard would stay taken for ever. Two threads that come here at once may register two
  // handlers; a second one changes nothing.
  static void abandon_in_children() noexcept {
    // Relaxed: a thread that sees `true` too late registers once more.
    static constinit std::atomic<bool> does{false};
    if (does.load(std::memory_order_relaxed)) return;
    ::pthread_atfork(nullptr, nullptr, [] {
      one.store(nullptr, std::memory_order_relaxed);  // no edge: the child has one thread now
    });
    does.store(true, std::memory_order_relaxed);
  }

  using files = std::array<file_id, 2>;
  struct place {
    std::shared_ptr<name_channel> channel;
    const io_service* service = nullptr;  // only compared: the service may be gone, or another one at that address
    name_query::channel_options options;
    files read_from{};
    clock::time_point looked_at, used_at;
  };

  static files files_of(const name_query::channel_options& options) noexcept {
    return {file_id::of(options.configuration.empty() ? "/etc/resolv.conf" : options.configuration.c_str()),
            file_id::of("/etc/nsswitch.conf")};
  }
  // Whether a channel may take new lookups. Checks the configuration files at most ten times a second.
  static bool is_current(place& one, clock::time_point now) {
    one.used_at = now;
    if (one.channel->is_used_up()) return false;
    if (now - one.looked_at < std::chrono::milliseconds{100}) return true;
    one.looked_at = now;
    return one.read_from == files_of(one.options);
  }
  // A free place; else, of the channels without a lookup, the place of the least recently used one; else null.
  place* free_place() noexcept {
    place* oldest = nullptr;
    for (place& one : places_) {
      if (one.channel == nullptr) return &one;
      if (one.channel.use_count() == 1 && (oldest == nullptr || one.used_at < oldest->used_at)) oldest = &one;
    }
    return oldest;
  }

  std::mutex lock_;  // guards the members below
  bool has_library_ =
      false;  // ares_library_init() was called here; c-ares counts the calls, so the program may call it, too
  std::array<place, 8> places_{};

  // Never destroyed. Abandoned in a forked child, where its locks may be taken, and its sockets are shared with the parent.
  //   edge channels  its construction  ->  who finds it. No model: one exchange of a pointer that does not change after it
  static constinit std::atomic<channels*> one;
};

constinit std::atomic<channels*> channels::one{nullptr};

// ---- a lookup ----------------------------------------------------------------------------------------------------------------

class begun_lookup {
 public:
  explicit begun_lookup(lookup& one) noexcept : one_{one} {}
  begun_lookup(const begun_lookup&) = delete;
  ~begun_lookup() {
    if (has_begun_) one_.channel.leave(one_);
  }
  std::error_code begin(const char* host, address_family family) noexcept {
    const std::error_code refused = one_.channel.begin(one_, host, family);
    has_begun_ = !refused;
    return refused;
  }

 private:
  lookup& one_;
  bool has_begun_ = false;
};

// A timer for the channel's next time-out, which sets the leader's event.
class due_timer : timer {
 public:
  explicit due_timer(event& tells) noexcept : timer{fire_now}, tells_{tells} {}
  ~due_timer() { real_clock().cancel(*this); }

  void set(clock::time_point to) noexcept {
    if (to == set_to_ && !has_fired_.load(std::memory_order_relaxed))
      return;  // the event, which is set after it, orders it
    real_clock().cancel(*this);
    has_fired_.store(false, std::memory_order_relaxed);  // no edge: after cancel() the timer does not fire
    set_to_ = to;
    if (to != clock::time_point::max()) real_clock().arm(*this, to);
  }

 private:
  static void fire_now(timer& self) noexcept {
    auto& mine = static_cast<due_timer&>(self);
    mine.has_fired_.store(true, std::memory_order_relaxed);  // the event on the next line orders it
    mine.tells_.set();                                       // the timer may be gone after this line
  }

  event& tells_;
  clock::time_point set_to_ = clock::time_point::max();
  std::atomic<bool> has_fired_{false};
};

// While a lookup leads (RAII): has the I/O service of its task watch the channel's epoll set. The number stays the channel's.
class watched_set {
 public:
  explicit watched_set(int set) : at_{io_service_here().watch(set, true)} {}
  watched_set(const watched_set&) = delete;
  ~watched_set() {
    static_cast<void>(at_.release());
    at_.drop();
  }
  descriptor& at() const noexcept { return at_; }

 private:
  descriptor& at_;
};

// The leader's work: waits for the channel's sockets and time-outs, for all its lookups, until `mine` is over.
task<> lead(name_channel& channel, lookup& mine) {
  const watched_set set{channel.set()};
  descriptor& watched = set.at();
  due_timer timer{mine.turn};
  for (;;) {
    if (has_had_its_turn()) co_await yield();
    mine.turn.reset();
    watched.expect_change(direction::in);
    const name_channel::progress now = channel.process(mine);
    if (now.is_over) co_return;
    if (now.has_more) continue;
    timer.set(now.due);
    auto either = select(on(watched.until_ready(direction::in)), on(mine.turn.wait()));
    co_await std::move(either);
  }
}

// The error of a lookup that failed. If no server could be used, it is what a server answered, or what the system lacked or
// forbade; otherwise `unreachable`. That there is no address is what c-ares says, too, where the question for one family could not
// be asked, and the answer to the other one has none: then it is what the system lacked.
std::error_code why_it_failed(const lookup& one) noexcept {
  if (one.status == ARES_SUCCESS || one.status == ARES_ENODATA)
    return one.lacked ? one.lacked : net::resolve_errc::no_address;
  if (one.status != ARES_ECONNREFUSED) return code_of_status(one.status);
  if (one.refused.category() == net::resolve_category() || is_lack(one.refused)) return one.refused;
  return resolve_errc::unreachable;
}

// How a lookup has ended.
struct lookup_end {
  std::vector<endpoint> found{};
  std::error_code why{};  // where nothing was found
  bool is_doubtful = false;
};

bool is_nothing(std::error_code why) noexcept {
  return why == resolve_errc::no_address || why == resolve_errc::not_found;
}

// Asks once, for the addresses of this family.
task<lookup_end> ask_channel(const name_query& what, address_family family, std::uint16_t port) {
  const std::shared_ptr<name_channel> channel = channels::instance().get(&io_service_here(), what.channel);
  const auto one = std::make_shared<lookup>(*channel);
  begun_lookup mine{*one};
  if (const std::error_code refused = mine.begin(what.host.c_str(), family)) co_return lookup_end{.why = refused};
  for (;;) {
    one->turn.reset();
    const name_channel::role now = channel->role_of(*one);
    if (now.is_over) break;
    if (now.leads)
      co_await lead(*channel, *one);
    else
      co_await one->turn.wait();
  }
  lookup_end end;
  if (one->status == ARES_SUCCESS && one->found != nullptr) end.found = endpoints_of(one->found->nodes, port);
  if (end.found.empty()) end.why = why_it_failed(*one);
  end.is_doubtful = is_nothing(end.why) && (one->is_doubtful || one->lacked);
  co_return end;
}

}  // namespace

// Of its two questions, c-ares tells how the one that was answered last has ended. Where that says that there is nothing, and the
// other one may have failed, each is asked alone. So what may be there is never said not to be.
task<std::vector<net::endpoint>> look_up_by_channel(name_query what, std::uint16_t port) {
  lookup_end end = co_await ask_channel(what, what.family, port);
  if (end.is_doubtful && what.family == address_family::any) {
    static constexpr std::array each{address_family::v4, address_family::v6};
    for (const address_family family : each) {
      lookup_end alone = co_await ask_channel(what, family, port);
      if (is_nothing(alone.why)) continue;
      end = std::move(alone);
      break;
    }
  }
  if (end.why) co_await fail_with(lookup_failure(end.why, what));
  co_return std::move(end.found);
}

}  // namespace weft::detail
