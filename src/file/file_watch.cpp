#include <weft/file_watch.hpp>

#include <limits.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <weft/error.hpp>
#include <weft/unix.hpp>

#include "file/path_call.hpp"
#include "io/io_service.hpp"
#include "net/failed_try.hpp"

namespace weft {
namespace detail {

// Events that were read from inotify and not taken yet. One task at a time uses it: the one that reads from the descriptor.
class event_queue {
 public:
  explicit event_queue(descriptor& at) noexcept : at_{&at} {}
  event_queue(const event_queue&) = delete;
  ~event_queue() { at_->drop(); }

  descriptor* at() const noexcept { return at_; }
  bool is_empty() const noexcept { return begin_ == end_; }

  /// Reads as many events as have come and have room. Does nothing if the queue has some.
  tried fill() noexcept {
    if (!is_empty()) return {};
    at_->expect_change(direction::in);
    ssize_t size;
    do size = ::read(at_->number(), bytes_, sizeof bytes_);
    while (size < 0 && errno == EINTR);
    if (size < 0) return failed(*at_, direction::in, errno);
    begin_ = 0;
    end_ = static_cast<std::size_t>(size);
    // There may be another event for which the buffer had no room. It came before, so no change is reported for it.
    if (end_ + largest > sizeof bytes_) at_->has_more(direction::in);
    return {};
  }

  fs::file_event take() {
    inotify_event head;
    std::memcpy(&head, bytes_ + begin_, sizeof head);
    constexpr std::uint32_t about_it = IN_ISDIR;
    fs::file_event one{.watch = fs::watch_id{head.wd},
                       .what = fs::file_change{head.mask & ~about_it},
                       .cookie = head.cookie,
                       .is_directory = (head.mask & IN_ISDIR) != 0,
                       .name = head.len == 0 ? std::string{} : std::string{bytes_ + begin_ + sizeof head}};
    begin_ += sizeof head + head.len;  // last, since the allocation of the name may throw
    return one;
  }

 private:
  static constexpr std::size_t largest = sizeof(inotify_event) + NAME_MAX + 1;

  descriptor* at_;
  std::size_t begin_ = 0, end_ = 0;
  alignas(inotify_event) char bytes_[std::size_t{16} * 1024];
};

void delete_event_queue::operator()(event_queue* one) const noexcept { delete one; }

bool awaiting_file_event::may_try() const noexcept { return !queue->is_empty() || at->may_try(which()); }
tried awaiting_file_event::attempt() const noexcept { return queue->fill(); }
fs::file_event awaiting_file_event::give(const tried&) const { return queue->take(); }

}  // namespace detail

namespace fs {
namespace {

static_assert(static_cast<std::uint32_t>(file_change::overflow) == IN_Q_OVERFLOW &&
              static_cast<std::uint32_t>(file_change::ended) == IN_IGNORED &&
              static_cast<std::uint32_t>(file_change::unmounted) == IN_UNMOUNT &&
              static_cast<std::uint32_t>(file_change::read | file_change::closed | file_change::opened | any_change) ==
                  IN_ALL_EVENTS);

task<watch_id> add_watch(detail::descriptor* at, std::string path, std::uint32_t mask) {
  const detail::descriptor_use use{at};
  if (!use) co_await fail_with(detail::failure_of(detail::closed_here(), "watch a file"));
  const auto call = [&] {
    const int id = ::inotify_add_watch(at->number(), path.c_str(), mask);
    return std::pair{id, id < 0 ? errno : 0};
  };
  auto [id, refused] = std::pair{-1, EINVAL};
  if (!has_nul(path)) std::tie(id, refused) = co_await blocking(call);
  const char* const operation =
      refused == ENOSPC ? "watch a file (as many as fs.inotify.max_user_watches allows are watched)" : "watch a file";
  if (refused != 0) co_await fail_with(error{system_error(refused), operation, path});
  co_return watch_id{id};
}

}  // namespace

file_watch::file_watch() {
  net::owned_descriptor file{::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
  if (file.number() < 0)
    throw error{system_error(errno),
                "watch files (fs.inotify.max_user_instances, and the descriptors of this process, are limits)"};
  detail::descriptor& watched = detail::io_service_here().watch(file.number(), true);
  static_cast<void>(file.release());
  try {
    queue_.reset(new detail::event_queue{watched});
  } catch (...) {
    watched.drop();
    throw;
  }
}

task<watch_id> file_watch::add(const watch_options& options, std::string_view path, file_change what) {
  WEFT_EXPECTS(
      (static_cast<std::uint32_t>(what) & IN_ALL_EVENTS) == static_cast<std::uint32_t>(what) && what != file_change{},
      "a file_watch was asked to watch for nothing, or for what only the system tells (ended, overflow, "
      "unmounted)");
  const std::uint32_t mask = static_cast<std::uint32_t>(what) | (options.follow_symlinks ? 0U : IN_DONT_FOLLOW) |
                             (options.only_directory ? IN_ONLYDIR : 0U) |
                             (options.ignore_unlinked ? IN_EXCL_UNLINK : 0U);
  return add_watch(queue_ != nullptr ? queue_->at() : nullptr, std::string{path}, mask);
}

bool file_watch::remove(watch_id which) noexcept {
  return queue_ != nullptr && ::inotify_rm_watch(queue_->at()->number(), static_cast<int>(which)) == 0;
}

detail::operation<detail::awaiting_file_event> file_watch::next() const noexcept {
  return detail::awaiting_file_event{queue_.get(), queue_ != nullptr ? queue_->at() : nullptr};
}

}  // namespace fs
}  // namespace weft
