// Child processes: how a program starts them, talks to them, and learns how they have ended.
//
//     w::task<std::string> revision() {
//       const w::process_output got = co_await w::output_of({"git", "rev-parse", "HEAD"});
//       if (!got.status.is_success()) throw std::runtime_error{got.err};
//       co_return got.out;
//     }
//
// By default a child begins a process group of its own, so that what ends the child also ends the processes which it has started.
// If the child ends by itself, those go on. A child begins with no signal blocked, with each signal's default action, and with no
// descriptors but those that it was given.
//
// weft learns of a child's end by its pidfd, not by SIGCHLD: no handler is installed, and other libraries' children are left
// alone. If the program ignores SIGCHLD, or reaps all children by wait(), the exit status is lost: process::wait() then fails
// with no_child_process. A signal never reaches an unrelated process that was given the same id: the child itself is signalled by
// its pidfd, and its group only after a check that the child was not reaped.
//
// Rejected: fork() and exec(): fork() copies the page tables, and its handlers may wait long for locks. posix_spawn shares
// the memory until exec(), so its cost does not grow with the program's memory.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/net/operation.hpp>
#include <weft/task.hpp>

namespace weft {

/// A list that a function takes: values in braces, `{"git", "rev-parse"}`, or a whole std::vector. Refers to its values, as a
/// string_view does.
///
/// It is trivially destructible and takes no std::initializer_list, since in a co_await g++ 12 destroys other temporaries twice
/// and rejects initializer lists.
template <class View, class Value>
class list_of {
 public:
  static constexpr std::size_t most = 32;  ///< values in braces

  list_of() = default;
  /// Values in braces, at most `most`.
  template <class... Parts>
    requires(sizeof...(Parts) > 0 && (std::convertible_to<const Parts&, View> && ...))
  list_of(const Parts&... parts) noexcept : few_{View(parts)...}, size_{sizeof...(Parts)} {  // NOLINT: for braces
    static_assert(sizeof...(Parts) <= most, "too many values in braces: pass a std::vector");
  }
  /// A whole vector, by reference.
  list_of(const std::vector<Value>& all) noexcept : many_{&all} {}  // NOLINT: for a vector

  /// Its values, on their own. Throws std::bad_alloc.
  std::vector<Value> copy() const {
    return many_ != nullptr ? *many_ : std::vector<Value>(few_.begin(), few_.begin() + size_);
  }

 private:
  std::array<View, most> few_{};
  std::ptrdiff_t size_ = 0;
  const std::vector<Value>* many_ = nullptr;
};
/// Texts, or numbers, that a function takes as `{a, b}` or as a std::vector.
using strings = list_of<std::string_view, std::string>;
using numbers = list_of<int, int>;

/// How a process has ended.
class exit_status {
 public:
  exit_status() noexcept = default;                                                      ///< exit code 0
  static exit_status of_code(int code) noexcept { return exit_status{code, 0, false}; }  ///< what exit(code) gives
  /// What a signal gives, with a core file or without.
  static exit_status of_signal(int number, bool dumped_core = false) noexcept {
    return exit_status{-1, number, dumped_core};
  }

  bool is_success() const noexcept { return code_ == 0; }     ///< exit code 0
  int code() const noexcept { return code_; }                 ///< its exit code, 0 to 255; -1: a signal has ended it
  int signal() const noexcept { return signal_; }             ///< the signal that has ended it; 0: none has
  bool dumped_core() const noexcept { return dumped_core_; }  ///< whether the signal has left a core file
  /// For people: "exit code 1", "signal 9 (Killed)".
  std::string to_string() const;

  friend bool operator==(const exit_status&, const exit_status&) = default;

 private:
  exit_status(int code, int number, bool dumped_core) noexcept
      : code_{code}, signal_{number}, dumped_core_{dumped_core} {}
  int code_ = 0;
  int signal_ = 0;
  bool dumped_core_ = false;
};

/// What a process has as its standard input, output or error.
class stdio {
 public:
  static stdio inherit() noexcept { return stdio{kind::inherit, -1}; }  ///< the same as this process's
  static stdio null() noexcept { return stdio{kind::null, -1}; }  ///< /dev/null: reads give nothing, writes are lost
  static stdio pipe() noexcept { return stdio{kind::pipe, -1}; }  ///< the other end is process::input, output or error
  /// A duplicate of the caller's descriptor; the caller keeps its own.
  static stdio descriptor(int number) noexcept { return stdio{kind::descriptor, number}; }
  static stdio to_output() noexcept {
    return stdio{kind::to_output, -1};
  }  ///< for the error output alone: the same as the standard output
  bool is_pipe() const noexcept { return which_ == kind::pipe; }

 private:
  friend class process;
  enum class kind { inherit, null, pipe, descriptor, to_output };
  stdio(kind which, int number) noexcept : which_{which}, number_{number} {}
  kind which_;
  int number_;
};

/// How a process is started. What it refers to is needed only during the call that takes it.
struct process_options {
  stdio in = stdio::null();
  stdio out = stdio::inherit();
  stdio err = stdio::inherit();
  /// The whole environment, each variable as "NAME=value". Unset: this process's environment.
  std::optional<strings> environment{};
  /// Variables, as "NAME=value", that are added to the environment, or replace those of the same name.
  strings variables{};
  /// Its working directory, in which a relative program path is looked up; empty: this process's.
  std::string_view directory{};
  numbers descriptors{};  ///< the caller's, duplicated: they become 3, 4, ... in the process
  /// Whether it leads a process group of its own, which end() and the destructor of `process` end with it. Set it to false for a
  /// program that reads the terminal or is to get Ctrl-C: a terminal suspends a reader in any group but the foreground one.
  bool own_group = true;
  /// After a stop of run_process() or output_of(): the time from SIGTERM to SIGKILL.
  detail::time_span grace = std::chrono::seconds{5};
};

namespace detail {

class child_process;
struct delete_child_process {
  void operator()(child_process* one) const noexcept;
};

tried try_read_pipe(descriptor& from, std::span<std::byte> into) noexcept;
tried try_write_pipe(descriptor& to, std::span<const std::byte> data) noexcept;

// What a pipe's functions return. It looks up the pipe's descriptor only when it is awaited or becomes a case of a select; the
// pipe must live until then.
template <class Act>
class WEFT_TO_BE_AWAITED("nothing happens until it is awaited") pipe_operation
    : public task_inside<pipe_operation<Act>, std::size_t> {
 public:
  using may_be_a_case = void;
  pipe_operation(descriptor* const& of, decltype(Act::data) data) noexcept : of_{&of}, data_{data} {}

  WEFT_COROUTINE_WRAPPER task<std::size_t> as_task() && { return run_operation(Act{*of_, data_}); }
  operation_case<Act> as_case() && { return operation_case<Act>{Act{*of_, data_}}; }

 private:
  descriptor* const* of_;
  decltype(Act::data) data_;
};

struct reading_output {
  using value_type = std::size_t;
  static constexpr const char* name = "read a process's output";
  static constexpr const char* if_taken =
      "two tasks read one output of a process at once: which of them gets what would be chance";
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept { return data.empty() || at->may_try(which()); }
  tried attempt() const noexcept { return data.empty() ? tried{} : try_read_pipe(*at, data); }
  static std::size_t give(const tried& got) noexcept { return got.size; }

  descriptor* at;
  std::span<std::byte> data;
};

struct writing_input {
  using value_type = std::size_t;
  static constexpr const char* name = "write a process's input";
  static constexpr const char* if_taken =
      "two tasks write the input of one process at once: what each writes could come apart in the middle";
  static constexpr direction which() noexcept { return direction::out; }
  bool may_try() const noexcept { return data.empty() || at->may_try(which()); }
  tried attempt() const noexcept { return data.empty() ? tried{} : try_write_pipe(*at, data); }
  static std::size_t give(const tried& sent) noexcept { return sent.size; }

  descriptor* at;
  std::span<const std::byte> data;
};

struct awaiting_end {
  using value_type = exit_status;
  static constexpr const char* name = "wait for a process";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept;
  tried attempt() const noexcept;
  exit_status give(const tried&) const noexcept;

  child_process* of;
  descriptor* at;
};

}  // namespace detail

/// This side's end of a pipe to a process; `process` makes it. The destructor closes it. It must not be moved between the call of
/// one of its functions and the await of what the call returns. Otherwise it is as net::stream.
class process_pipe {
 public:
  process_pipe() noexcept = default;
  process_pipe(process_pipe&& other) noexcept : at_{std::exchange(other.at_, nullptr)} {}
  process_pipe& operator=(process_pipe&& other) noexcept {
    process_pipe old{std::move(*this)};
    at_ = std::exchange(other.at_, nullptr);
    return *this;
  }
  ~process_pipe() { close(); }

  /// Closes this end: the process then reads to the end of its input, or fails to write its output. A read or a write that waits
  /// here fails with `closed`. Does not wait; may be called again, and while a read or a write waits, but not while another
  /// thread begins one.
  void close() noexcept {
    // drop() gives the descriptor back at once: a ring that polls the pipe would otherwise keep it open.
    if (at_ != nullptr) std::exchange(at_, nullptr)->drop();
  }
  bool is_open() const noexcept { return at_ != nullptr; }
  int native_handle() const noexcept { return at_ != nullptr ? at_->shown_number() : -1; }

 protected:
  friend class process;
  detail::descriptor* at_ = nullptr;
};

/// Reads what a process writes. A reader.
class process_reader : public process_pipe {
 public:
  /// Reads the bytes that are there, at most as many as `into` holds. 0: no process has the other end open, or `into` is empty.
  ///
  /// Suspends  where no bytes are there, and after 128 operations in a row that did not suspend.
  /// Cancel    a stopped read has taken nothing.
  /// Fails     with an error of the system's; with `closed` where close() was called on this end.
  /// Misuse    two tasks that read at once end the program with a sentence.
  /// Cost      one system call where bytes are there.
  detail::pipe_operation<detail::reading_output> read(std::span<std::byte> into) const noexcept { return {at_, into}; }
};

/// Writes what a process reads. A writer.
class process_writer : public process_pipe {
 public:
  /// Writes a part of `data`, at least one byte unless it is empty.
  ///
  /// Suspends  where the pipe is full, and after 128 operations in a row that did not suspend.
  /// Cancel    a stopped call has written nothing.
  /// Fails     with `closed` where no process has the other end open, or close() was called on this end. No SIGPIPE is raised.
  /// Misuse    two tasks that write at once end the program with a sentence.
  /// Cost      one write(), and four short system calls that keep SIGPIPE blocked meanwhile.
  detail::pipe_operation<detail::writing_input> write_some(std::span<const std::byte> data) const noexcept {
    return {at_, data};
  }
  /// Writes all of `data`. Otherwise as write_some().
  ///
  /// Cancel    a stopped write may have written a part. The pipe stays open.
  WEFT_COROUTINE_WRAPPER task<> write(std::span<const std::byte> data) const { return write_all(&at_, data); }
  WEFT_COROUTINE_WRAPPER task<> write(std::string_view text) const { return write(std::as_bytes(std::span{text})); }

 private:
  static task<> write_all(detail::descriptor* const* of, std::span<const std::byte> data);
};

/// A process that this one has started.
///
/// If the process has not ended by then, the destructor kills it and its group (SIGKILL), and waits for its end: no process and
/// no zombie is left. For an orderly end, await end(), or use run_process().
///
/// Threads   any thread may call wait() and signal(), several at once. Move or destroy it only while no wait() is under way.
/// Lifetime  the runtime in which it was made outlives it.
class [[nodiscard("a process is killed where this is destroyed")]] process {
 public:
  /// Starts a program. The first argument names it; a name without '/' is searched for in this process's PATH.
  ///
  /// Fails   throws error with the system's code (no_such_file_or_directory, permission_denied, too_many_files_open), or with
  ///         invalid_argument for arguments that make no sense: no arguments, a variable without '='. No process is left then.
  ///         Also throws no_such_process where SIGCHLD is ignored and the process has ended already.
  /// Cost    blocks this thread until the program is loaded: half a millisecond, or as long as its disk takes.
  process(const process_options& options, const strings& arguments);
  explicit process(const strings& arguments) : process{{}, arguments} {}
  process(process&&) noexcept = default;
  process& operator=(process&&) noexcept = default;
  ~process() = default;

  int id() const noexcept;  ///< its process id; -1: it was released, or moved from

  process_writer input;   ///< open where its input is a pipe; close it to end the process's input
  process_reader output;  ///< open where its output is a pipe
  process_reader error;   ///< open where its error output is a pipe

  /// Waits until the process has ended, and gives its exit status. May be awaited again, by several tasks at once, and as a case
  /// of a select.
  ///
  /// Suspends  until the process has ended. Processes that it has started, and its pipes, may still be there.
  /// Cancel    has no effect on the process.
  /// Fails     with no_child_process where other code has reaped the process.
  detail::operation<detail::awaiting_end> wait() const noexcept;

  /// Sends a signal to the process, and to its group where it leads one. Does nothing once the process was reaped. Throws error,
  /// such as invalid_argument for a number that is no signal.
  void signal(int number) const;

  /// Ends the process and its group, and gives the exit status: sends SIGTERM, and SIGKILL to what is left of both once `grace` is
  /// over. Before Linux 6.9 what is left of the group is killed as soon as the process itself has ended. A process that was already
  /// reaped is sent nothing.
  ///
  /// Suspends  until the process and its group have ended; not if it was already reaped.
  /// Cancel    they may have been sent SIGTERM, but are not killed.
  /// Fails     as wait(); and as signal(), where the process belongs to another user.
  WEFT_COROUTINE_WRAPPER task<exit_status> end(detail::time_span grace = std::chrono::seconds{5}) const {
    return end_within(child_.get(), grace);
  }

  /// Releases the process, which goes on, and gives its id. The caller must reap it. -1: it was reaped, as by wait().
  [[nodiscard("the process is nobody's then")]] int release() noexcept;

 private:
  static task<exit_status> end_within(detail::child_process* child, detail::time_span grace);
  std::unique_ptr<detail::child_process, detail::delete_child_process> child_;
};

/// Starts a program, and waits until it has ended.
///
/// Cancel    ends the process as process::end() does, within `options.grace`, and then completes as stopped.
/// Fails     as the constructor of `process`; with invalid_argument where a stream is a pipe, which nobody could use.
WEFT_COROUTINE_TAKES_OVER task<exit_status> run_process(const process_options& options, const strings& arguments);
WEFT_COROUTINE_TAKES_OVER inline task<exit_status> run_process(const strings& arguments) {
  return run_process(process_options{}, arguments);
}

/// How output_of() starts a program, what the program reads, and how much it may write.
struct output_options {
  process_options process{};                  ///< its three streams are set by output_of()
  std::string_view input{};                   ///< what the program reads
  std::size_t limit = std::size_t{16} << 20;  ///< bytes that it may write, to each of output and error output
};
/// What a program has written, and how it ended.
struct process_output {
  exit_status status;
  std::string out;
  std::string err;
};

/// Starts a program, and gives what it has written and how it has ended. Waits until it has ended and every process that has its
/// output open, also those that it has started, has closed it.
///
/// Cancel    ends the process, as run_process() does.
/// Fails     as the constructor of `process`; with file_too_large where it writes more than `limit`, which also ends it.
WEFT_COROUTINE_TAKES_OVER task<process_output> output_of(const output_options& options, const strings& arguments);
WEFT_COROUTINE_TAKES_OVER inline task<process_output> output_of(const strings& arguments) {
  return output_of(output_options{}, arguments);
}

}  // namespace weft
