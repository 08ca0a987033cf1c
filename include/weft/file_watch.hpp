// What happens to files and directories, as a stream: inotify.
//
//     w::fs::file_watch watch;
//     co_await watch.add("/etc/myserver", w::fs::file_change::written | w::fs::file_change::moved_to);
//     for (;;) {
//       const w::fs::file_event one = co_await watch.next();
//       if (one.has(w::fs::file_change::overflow) || one.name == "config") co_await reload();
//     }
//
// An event says that something has happened, not what is there now: that may be something else again. Only what the system itself
// does is seen: nothing of what other machines do on a network's file system. A directory that is watched tells of the names in
// it, not of what lies deeper: each directory of a tree takes a watch of its own.
//
// Rejected: to read events in a task of its own into a channel. Its length would be a second queue, with an overflow of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/net/operation.hpp>
#include <weft/task.hpp>

namespace weft::fs {

/// What happens to a file, or to one in a directory; several by `|`. The values are the system's.
enum class file_change : std::uint32_t {
  read = 0x1,
  modified = 0x2,    ///< written to, or truncated; a long write gives several
  attributes = 0x4,  ///< permissions, times, owner; also the number of names
  written = 0x8,     ///< closed by one that could write: what it has written is there
  closed = 0x10,     ///< closed by one that could only read
  opened = 0x20,
  moved_from = 0x40,  ///< out of the directory, or to another name in it: event.name is the old one
  moved_to = 0x80,    ///< the new one, with the same cookie where both directories are watched
  created = 0x100,
  removed = 0x200,
  self_removed = 0x400,  ///< what is watched has no name any more, and nobody has it open
  self_moved = 0x800,    ///< what is watched has another name, and is watched on

  // What only comes, whatever was asked for.
  unmounted = 0x2000,
  overflow = 0x4000,  ///< events were lost, of whichever watch: event.watch is none. Look at what is there
  ended = 0x8000,     ///< this watch is over: removed, or what was watched is gone. The last one of its id
};
constexpr file_change operator|(file_change a, file_change b) noexcept {
  return file_change{static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b)};
}
constexpr file_change operator&(file_change a, file_change b) noexcept {
  return file_change{static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b)};
}
/// All that changes something, and nothing of who reads.
inline constexpr file_change any_change = file_change::modified | file_change::attributes | file_change::written |
                                          file_change::moved_from | file_change::moved_to | file_change::created |
                                          file_change::removed | file_change::self_removed | file_change::self_moved;

/// Which watch of a file_watch. No other one gets the same.
enum class watch_id : int { none = -1 };

/// What has happened to a file.
struct file_event {
  watch_id watch = watch_id::none;
  file_change what{};
  std::uint32_t cookie = 0;   ///< what moved_from and moved_to of one move have in common; 0: it is no move
  bool is_directory = false;  ///< that it has happened to
  std::string name;           ///< in the directory that is watched; empty: it has happened to what is watched itself

  /// Whether one of these has happened.
  bool has(file_change any) const noexcept { return (what & any) != file_change{}; }
};

/// How a path is watched.
struct watch_options {
  bool follow_symlinks = true;   ///< no: a link itself is watched
  bool only_directory = false;   ///< else fails with not_a_directory
  bool ignore_unlinked = false;  ///< nothing of files in the directory that have no name any more, and are still open
};

}  // namespace weft::fs

namespace weft::detail {

class event_queue;
struct delete_event_queue {
  void operator()(event_queue* one) const noexcept;
};

struct awaiting_file_event {
  using value_type = fs::file_event;
  static constexpr const char* name = "wait for a change of a file";
  static constexpr const char* if_taken =
      "two tasks wait for the next event of one file_watch at once: which of them gets it would be chance";
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept;  // also where one was read already
  tried attempt() const noexcept;
  fs::file_event give(const tried&) const;

  event_queue* queue;
  descriptor* at;
};

}  // namespace weft::detail

namespace weft::fs {

/// Watches files and directories from add() on.
///
/// Fails     the constructor throws error: too_many_files_open where the user has as many as fs.inotify.max_user_instances
///           allows, or the process as many descriptors as it may. And std::bad_alloc.
/// Threads   any: add() and remove() at once, and while a task waits; one task at a time waits. Moves and destruction are for
///           when nobody is at it.
/// Lifetime  the runtime in which it was made outlives it, as it does a stream.
/// Cost      a descriptor, and 16 KiB.
class [[nodiscard("it watches as long as it lives")]] file_watch {
 public:
  file_watch();
  file_watch(file_watch&&) noexcept = default;
  file_watch& operator=(file_watch&&) noexcept = default;
  ~file_watch() = default;

  /// Watches what the path leads to, from now on and whatever it is called later. Its events may come before this returns. What is
  /// watched already, also by another name, keeps its id, and is watched for `what` instead.
  ///
  /// Suspends  always: finding the path may wait for a disk, on the blocking pool.
  /// Cancel    before it has begun, nothing is watched. Once it has, it is waited for.
  /// Fails     with error; no_space_on_device where the user has as many watches as fs.inotify.max_user_watches allows.
  WEFT_COROUTINE_TAKES_OVER task<watch_id> add(const watch_options& options, std::string_view path,
                                               file_change what = any_change);
  WEFT_COROUTINE_TAKES_OVER task<watch_id> add(std::string_view path, file_change what = any_change) {
    return add(watch_options{}, path, what);
  }

  /// Ends a watch. What it has seen before still comes, and then `ended`. False: it has ended already.
  bool remove(watch_id which) noexcept;

  /// The next event, in the order in which they have happened. A case of a select, too.
  ///
  /// Suspends  where none has come, and after 128 operations in a row that did not.
  /// Cancel    has taken none.
  /// Fails     with an error of the system's. With std::bad_alloc, after which the event is still there.
  /// Misuse    two tasks that wait at once end the program with a sentence.
  /// Cost      a system call for as many events as have come, up to 16 KiB of them.
  detail::operation<detail::awaiting_file_event> next() const noexcept;

 private:
  std::unique_ptr<detail::event_queue, detail::delete_event_queue> queue_;
};

}  // namespace weft::fs
