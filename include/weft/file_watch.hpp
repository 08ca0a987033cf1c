// Changes of files and directories, as a stream of events (inotify).
//
//     w::fs::file_watch watch;
//     co_await watch.add("/etc/myserver", w::fs::file_change::written | w::fs::file_change::moved_to);
//     for (;;) {
//       const w::fs::file_event one = co_await watch.next();
//       if (one.has(w::fs::file_change::overflow) || one.name == "config") co_await reload();
//     }
//
// An event says what has happened; the file may have changed again since. Changes that other machines make on a network file
// system are not seen. The watch of a directory reports the names in it, but nothing in the directories below: each needs a
// watch of its own.
//
// Rejected: a task that reads events into a channel. The channel would be a second queue that can overflow.
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

/// What happens to a file, or to a name in a directory; several are combined by `|`. The values are those of inotify.
enum class file_change : std::uint32_t {
  read = 0x1,
  modified = 0x2,    ///< written to, or truncated; a long write gives several
  attributes = 0x4,  ///< permissions, times, owner, or the number of names
  written = 0x8,     ///< closed by a program that had it open for writing
  closed = 0x10,     ///< closed by a program that had it open for reading only
  opened = 0x20,
  moved_from = 0x40,  ///< moved out of the directory, or renamed in it: event.name is the old name
  moved_to = 0x80,    ///< moved into the directory, or renamed in it: event.name is the new name
  created = 0x100,
  removed = 0x200,
  self_removed = 0x400,  ///< the watched file has no name any more, and nobody has it open
  self_moved = 0x800,    ///< the watched file was renamed; the watch goes on

  // Reported whether or not they are asked for.
  unmounted = 0x2000,
  overflow = 0x4000,  ///< events of any watches were lost; event.watch is none. Look at the files themselves
  ended = 0x8000,     ///< the last event of a watch: it was removed, or the watched file is gone
};
constexpr file_change operator|(file_change a, file_change b) noexcept {
  return file_change{static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b)};
}
constexpr file_change operator&(file_change a, file_change b) noexcept {
  return file_change{static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b)};
}
/// All changes, without opening, reading and closing.
inline constexpr file_change any_change = file_change::modified | file_change::attributes | file_change::written |
                                          file_change::moved_from | file_change::moved_to | file_change::created |
                                          file_change::removed | file_change::self_removed | file_change::self_moved;

/// Identifies a watch of a file_watch. It is not given again.
enum class watch_id : int { none = -1 };

/// One event.
struct file_event {
  watch_id watch = watch_id::none;
  file_change what{};
  std::uint32_t cookie = 0;   ///< the same in moved_from and moved_to of one move; 0: it is no move
  bool is_directory = false;  ///< whether it has happened to a directory
  std::string name;           ///< the name in the watched directory; empty: it has happened to the watched file itself

  /// Whether it is one of `any`.
  bool has(file_change any) const noexcept { return (what & any) != file_change{}; }
};

/// How a path is watched.
struct watch_options {
  bool follow_symlinks = true;   ///< otherwise a symbolic link itself is watched
  bool only_directory = false;   ///< fails with not_a_directory where the path leads to something else
  bool ignore_unlinked = false;  ///< reports nothing about open files that have lost their name in the directory
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

/// Watches files and directories, each from its add() on.
///
/// Fails     the constructor throws error: too_many_files_open where the user has fs.inotify.max_user_instances of them, or the
///           process has no more descriptors; and std::bad_alloc.
/// Threads   any thread may call add() and remove(), also while a task waits in next(). One task at a time may wait. Move or
///           destroy it only while no other thread uses it.
/// Lifetime  the runtime in which it was made outlives it.
/// Cost      a descriptor, and 16 KiB. If it watches anything, its destructor blocks its thread for 6 to 15 ms, in the system.
class [[nodiscard("it watches as long as it lives")]] file_watch {
 public:
  file_watch();
  file_watch(file_watch&&) noexcept = default;
  file_watch& operator=(file_watch&&) noexcept = default;
  ~file_watch() = default;

  /// Watches the file that the path leads to, also after it is renamed. Events may come before this returns. A file that is
  /// watched already, by whatever name, keeps its id, and is watched for `what` from now on.
  ///
  /// Suspends  always: the path is looked up on the blocking pool.
  /// Cancel    a call that is stopped before it has begun watches nothing. One that has begun runs to its end.
  /// Fails     with the system's error: no_such_file_or_directory; no_space_on_device where the user has
  ///           fs.inotify.max_user_watches of them.
  WEFT_COROUTINE_TAKES_OVER task<watch_id> add(const watch_options& options, std::string_view path,
                                               file_change what = any_change);
  WEFT_COROUTINE_TAKES_OVER task<watch_id> add(std::string_view path, file_change what = any_change) {
    return add(watch_options{}, path, what);
  }

  /// Ends a watch. Its earlier events still come, and then `ended`. Gives false where it had ended already. Does not suspend.
  bool remove(watch_id which) noexcept;

  /// Gives the next event, in the order in which they have happened. May be a case of a select.
  ///
  /// Suspends  where there is no event, and after 128 operations in a row that did not suspend.
  /// Cancel    a stopped call has taken no event.
  /// Fails     with the system's error; with std::bad_alloc, after which the next call gives the event.
  /// Misuse    two tasks that wait at once end the program with a sentence.
  /// Cost      one system call for all events that have come, up to 16 KiB of them.
  detail::operation<detail::awaiting_file_event> next() const noexcept;

 private:
  std::unique_ptr<detail::event_queue, detail::delete_event_queue> queue_;
};

}  // namespace weft::fs
