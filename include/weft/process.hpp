// Processes that this one starts: what they read and write, and how they end.
//
//     w::task<std::string> revision() {
//       const w::process_output got = co_await w::output_of({"git", "rev-parse", "HEAD"});
//       if (!got.status.is_success()) throw std::runtime_error{got.err};
//       co_return got.out;
//     }
//
// A process begins in a group of its own, so that what ends it ends what it has started in turn; what it leaves behind when it
// ends by itself goes on. It begins with no signal blocked, each signal's default action, and no descriptor but those that it
// was given.
//
// Its end is known by a descriptor of the process (pidfd), not by SIGCHLD: so nothing is installed for all of the program, and
// a process of another library's is left alone. A program that ignores SIGCHLD, or reaps all of its children by wait(),
// takes that away: how such a process has ended is not known, and wait() fails with no_child_process. No signal goes to a number
// that may be another's by then: a process is sent its signals by its pidfd, and before its group is, it is asked whether the
// process is still there.
//
// Rejected: to start by fork() and exec(): it copies the page tables, and what a fork handler locks may be held for long.
// posix_spawn shares the memory until exec(), so that its cost does not grow with the program's.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
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

/// Some values, as braces make them, `{"git", "rev-parse"}`, or all of a vector. Refers to what it is given, as a string_view does.
///
/// It is trivially destructible, and made of no std::initializer_list: g++ 12 destroys others twice, and refuses those, where
/// they stand in a co_await.
template <class View, class Value>
class list_of {
 public:
  static constexpr std::size_t most = 32;  ///< in braces

  list_of() = default;
  template <class... Parts>
    requires(sizeof...(Parts) > 0 && (std::convertible_to<const Parts&, View> && ...))
  list_of(const Parts&... parts) noexcept : few_{View(parts)...}, size_{sizeof...(Parts)} {  // NOLINT: stands for them
    static_assert(sizeof...(Parts) <= most, "so many are to be given by a vector");
  }
  list_of(const std::vector<Value>& all) noexcept : many_{&all} {}  // NOLINT: as above

  std::vector<Value> copy() const {
    return many_ != nullptr ? *many_ : std::vector<Value>(few_.begin(), few_.begin() + size_);
  }

 private:
  std::array<View, most> few_{};
  std::ptrdiff_t size_ = 0;
  const std::vector<Value>* many_ = nullptr;
};
/// Texts, and numbers, that a function takes as `{a, b}` or as a std::vector.
using strings = list_of<std::string_view, std::string>;
using numbers = list_of<int, int>;

/// How a process has ended.
class exit_status {
 public:
  exit_status() noexcept = default;  ///< with 0
  static exit_status of_code(int code) noexcept { return exit_status{code, 0, false}; }
  static exit_status of_signal(int number, bool dumped_core = false) noexcept {
    return exit_status{-1, number, dumped_core};
  }

  bool is_success() const noexcept { return code_ == 0; }
  int code() const noexcept { return code_; }      ///< what it has returned, from 0 to 255; -1: a signal has ended it
  int signal() const noexcept { return signal_; }  ///< which; 0: none
  bool dumped_core() const noexcept { return dumped_core_; }
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
  static stdio inherit() noexcept { return stdio{kind::inherit, -1}; }  ///< this process's own
  static stdio null() noexcept { return stdio{kind::null, -1}; }  ///< /dev/null: nothing comes, and what goes is lost
  static stdio pipe() noexcept { return stdio{kind::pipe, -1}; }  ///< process::input, output or error
  /// A descriptor of the caller's, which it keeps.
  static stdio descriptor(int number) noexcept { return stdio{kind::descriptor, number}; }
  static stdio to_output() noexcept {
    return stdio{kind::to_output, -1};
  }  ///< of the error output: where the output goes

 private:
  friend class process;
  enum class kind : std::uint8_t { inherit, null, pipe, descriptor, to_output };
  stdio(kind which, int number) noexcept : which_{which}, number_{number} {}
  kind which_;
  int number_;
};

/// Is read in the call that it is given to, and what it refers to only there.
struct process_options {
  stdio in = stdio::null();
  stdio out = stdio::inherit();
  stdio err = stdio::inherit();
  /// "NAME=value", all that it has. Unset: what this process has.
  std::optional<strings> environment{};
  /// "NAME=value", which it has besides, or instead of another value.
  strings variables{};
  std::string_view directory{};  ///< where it begins, and looks for a relative program; empty: where this process is
  numbers descriptors{};         ///< of the caller's, which it keeps: they become 3, 4, ... in the process
  /// It begins a group of processes, which end() and its destruction end with it. No for a program that reads the terminal, or
  /// that Ctrl-C is to reach: a terminal stops what reads it in any group but one.
  bool own_group = true;
  detail::time_span grace =
      std::chrono::seconds{5};  ///< how long run_process() and output_of() leave it, once they were stopped
};

namespace detail {

class child_process;
struct delete_child_process {
  void operator()(child_process* one) const noexcept;
};

tried try_read_pipe(descriptor& from, std::span<std::byte> into) noexcept;
tried try_write_pipe(descriptor& to, std::span<const std::byte> data) noexcept;

// What a pipe's functions return: which descriptor it is, it asks when it is awaited, or made a case. The pipe is there till then.
template <class Act>
class [[nodiscard("nothing happens until it is awaited")]] pipe_operation
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

/// An end of a pipe whose other end a process has; made by `process`. Closed when it goes. It stays where it is from the call of
/// a function to the await of what that gives. Otherwise as net::stream is.
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

  /// The process reads to the end, or writes in vain. Who reads or writes here ends with `closed`. Does not wait, and may be
  /// called again; also while a read or a write waits, but not while another thread begins one.
  void close() noexcept {
    // Given back at once: a ring that polls the pipe would keep it open otherwise.
    if (at_ != nullptr) std::exchange(at_, nullptr)->drop();
  }
  bool is_open() const noexcept { return at_ != nullptr; }
  int native_handle() const noexcept { return at_ != nullptr ? at_->shown_number() : -1; }

 protected:
  friend class process;
  detail::descriptor* at_ = nullptr;
};

/// What a process writes, as this one reads it. A reader.
class process_reader : public process_pipe {
 public:
  /// Reads what has come, as much as `into` holds. 0: nobody has the other end any more, or `into` is empty.
  ///
  /// Suspends  where nothing has come, and after 128 operations in a row that did not.
  /// Cancel    has had no effect.
  /// Fails     with an error of the system's; `closed` where this was closed here.
  /// Misuse    two tasks that read at once end the program with a sentence.
  /// Cost      one system call where something has come.
  detail::pipe_operation<detail::reading_output> read(std::span<std::byte> into) const noexcept { return {at_, into}; }
};

/// What a process reads, as this one writes it. A writer.
class process_writer : public process_pipe {
 public:
  /// Writes some of it, at least a byte, unless it is empty.
  ///
  /// Suspends  where the pipe is full, and after 128 operations in a row that were not.
  /// Cancel    has had no effect.
  /// Fails     with `closed` where nobody has the other end any more, or this was closed here. No SIGPIPE is raised.
  /// Misuse    two tasks that write at once end the program with a sentence.
  /// Cost      one system call, and four short ones (no SIGPIPE must come of it).
  detail::pipe_operation<detail::writing_input> write_some(std::span<const std::byte> data) const noexcept {
    return {at_, data};
  }
  /// Writes all of it. Otherwise as write_some().
  ///
  /// Cancel    before its first byte it has had no effect; after that it has written a part, and the pipe stays open.
  WEFT_COROUTINE_WRAPPER task<> write(std::span<const std::byte> data) const { return write_all(&at_, data); }
  WEFT_COROUTINE_WRAPPER task<> write(std::string_view text) const { return write(std::as_bytes(std::span{text})); }

 private:
  static task<> write_all(detail::descriptor* const* of, std::span<const std::byte> data);
};

/// A process that this one has started.
///
/// Destroyed before it was awaited to its end, it and its group are killed (SIGKILL), and the destructor waits for that: no
/// process and no zombie is left. Who wants it to end in good order awaits end(), or uses run_process().
///
/// Threads   any: wait() and signal() at once, and from several. Moves and destruction are for when nobody waits.
/// Lifetime  the runtime in which it was made outlives it.
class [[nodiscard("a process is killed where this is destroyed")]] process {
 public:
  /// Starts a program, the first argument, which is searched for in this process's PATH where it has no '/'.
  ///
  /// Fails   throws error: what the system says (no_such_file_or_directory, permission_denied, too_many_files_open), or
  ///         invalid_argument for what makes no sense: no arguments, a variable without '='. Then nothing was started. And with
  ///         no_such_process, where SIGCHLD is ignored and it has ended already.
  /// Cost    blocks this thread until the program is loaded: half a millisecond, or as long as its disk takes.
  process(const process_options& options, const strings& arguments);
  explicit process(const strings& arguments) : process{{}, arguments} {}
  process(process&&) noexcept = default;
  process& operator=(process&&) noexcept = default;
  ~process() = default;

  int id() const noexcept;  ///< its number; -1: it was given up, or moved from

  process_writer input;   ///< where its input is a pipe; to be closed so that it reads to the end
  process_reader output;  ///< where its output is one
  process_reader error;   ///< where its error output is one

  /// How it has ended. May be awaited again, and by several. A case of a select, too.
  ///
  /// Suspends  until it has. What it has started, and its pipes, may still be there.
  /// Cancel    has no effect on it.
  /// Fails     with no_child_process where somebody else has reaped it.
  detail::operation<detail::awaiting_end> wait() const noexcept;

  /// Sends a signal to it, or to its group where it has one of its own. Nothing happens once wait() has given its end. Throws
  /// error, as invalid_argument for what is no signal.
  void signal(int number) const;

  /// Ends it and its group: SIGTERM, and once `grace` is over SIGKILL; then how it has ended. What is left of its group when
  /// the process itself has ended is killed. Does nothing where wait() has given its end before.
  ///
  /// Suspends  until it has ended, at once where wait() has given its end before.
  /// Cancel    leaves it as it is: perhaps told to end, but not killed.
  /// Fails     as wait(); and as signal(), where it has another user.
  WEFT_COROUTINE_WRAPPER task<exit_status> end(detail::time_span grace = std::chrono::seconds{5}) const {
    return end_within(child_.get(), grace);
  }

  /// Gives the process up: it goes on, and the caller reaps what has this id.
  [[nodiscard("the process is nobody's then")]] int release() noexcept;

 private:
  static task<exit_status> end_within(detail::child_process* child, detail::time_span grace);
  std::unique_ptr<detail::child_process, detail::delete_child_process> child_;
};

/// Starts a program, and waits until it has ended. One that is stopped ends it as process::end() does, in `options.grace`,
/// and ends stopped then. Pipes make no sense here: they are refused with invalid_argument.
WEFT_COROUTINE_TAKES_OVER task<exit_status> run_process(const process_options& options, const strings& arguments);
WEFT_COROUTINE_TAKES_OVER inline task<exit_status> run_process(const strings& arguments) {
  return run_process(process_options{}, arguments);
}

/// What output_of gives a program to read, and how much it takes from it.
struct output_options {
  process_options process{};                  ///< its three streams are set by output_of()
  std::string_view input{};                   ///< what the program reads
  std::size_t limit = std::size_t{16} << 20;  ///< bytes that it may write, of each kind
};
/// What a program has written, and how it ended.
struct process_output {
  exit_status status;
  std::string out;
  std::string err;
};

/// Starts a program, and gives what it has written and how it has ended. Waits until all that have its output have ended, also
/// those that it has started.
///
/// Cancel    as run_process(): ends it.
/// Fails     as the constructor of `process`; with file_too_large where it writes more than `limit`: then it is ended.
WEFT_COROUTINE_TAKES_OVER task<process_output> output_of(const output_options& options, const strings& arguments);
WEFT_COROUTINE_TAKES_OVER inline task<process_output> output_of(const strings& arguments) {
  return output_of(output_options{}, arguments);
}

}  // namespace weft
