// Operations on sockets: what a read, a write or an accept does where it is awaited, and as a case of a select. Part of
// net.hpp.
//
// An operation is tried at once; if it would block, it waits until the socket is ready and is tried again. It fails by
// fail_with, so that as_result gets the error without a throw.
//
// As a case of a select it waits in the line of the descriptor's event. The select itself tries it, after it has chosen the case
// and released all locks. The try may find nothing, if another task accepts from the same listener. Then the case was chosen in
// vain, and the select waits again, for all of its cases. So an operation that was not chosen was not tried either, and has had
// no effect.
//
// Rejected: the thread that reports the readiness tries the operation before it claims the select's wait. It would call the
// system under a lock, while it has other descriptors' readiness to report; and if it then failed to claim the wait, it would
// hold data that no task receives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <weft/detail/channel/select_wait.hpp>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/task/task_awaiter.hpp>
#include <weft/error.hpp>
#include <weft/hop.hpp>
#include <weft/nothrow.hpp>
#include <weft/select_on.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

namespace weft::net { union ip_address; }  // namespace weft::net

namespace weft::detail {

/// The outcome of a try: a number of bytes or a descriptor's number; or that the operation must wait; or an error.
struct tried {
  std::size_t size = 0;
  bool must_wait = false;
  std::error_code refused{};
};
tried try_receive(descriptor& from, std::span<std::byte> into) noexcept;
/// Into several parts, of which the first is not empty: into 64 of them at most.
tried try_receive(descriptor& from, std::span<const std::span<std::byte>> into) noexcept;
/// From several parts, of which the first is not empty: from 64 of them at most.
tried try_send(descriptor& to, std::span<const std::span<const std::byte>> parts) noexcept;
/// The part of a file that is still to be sent.
struct file_part {
  int number;
  std::uint64_t offset, size;
  bool by_copies = false;  // sendfile() can't send this file, so it is read into a buffer and sent from there
};
tried try_send_file(descriptor& to, file_part& part) noexcept;
/// Gives the connection's number as `size`. Sets `*peer`, if `peer` is not null, to the peer's address if that is an IP address.
tried try_accept(descriptor& from, net::ip_address* peer = nullptr) noexcept;
/// Counts an operation of the running job. True: it was the last of the job's budget, so the task must let others run.
bool has_had_its_turn() noexcept;

/// What an operation fails with.
std::exception_ptr failure_of(std::error_code refused, const char* operation) noexcept;
inline std::error_code closed_here() noexcept { return make_error_code(errc::closed); }

// ---- operations that one successful try completes ---------------------------------------------------------------------------

// An act is one operation as an object. It has:
//   value_type, name           the type of its result, and its name in errors
//   if_taken                   the assertion's sentence if another one is under way in its direction; null: any number may be
//   at                         the descriptor; null: the operation fails with `closed`
//   direction which()          the direction whose readiness it waits for
//   bool may_try()             whether a try may succeed
//   tried attempt()            one try
//   value_type give(tried)     the result, after a try that neither failed nor has to wait

template <class Act>
task<typename Act::value_type> run_operation(Act act) {
  const descriptor_use use{act.at, act.which(), Act::if_taken};
  if (!use) co_await fail_with(failure_of(closed_here(), Act::name));
  co_await check_stop();
  if (has_had_its_turn()) co_await yield();
  for (;;) {
    if (act.may_try())
      if (const tried got = act.attempt(); !got.must_wait) {
        if (got.refused) co_await fail_with(failure_of(got.refused, Act::name));
        co_return act.give(got);
      }
    co_await act.at->until_ready(act.which());
    if (act.at->is_closed()) co_await fail_with(failure_of(closed_here(), Act::name));
  }
}

/// An operation as a case of a select.
template <class Act>
class operation_case final : public select_case {
  using line = decltype(std::declval<descriptor&>().line_of({}).as_case());

 public:
  static constexpr bool gives_nothing = std::is_void_v<typename Act::value_type>;
  using result_type = std::conditional_t<gives_nothing, std::monostate, typename Act::value_type>;
  using state = operation_case;
  explicit operation_case(Act act) noexcept : act_(std::move(act)) {
    if (act_.at != nullptr) place_.emplace(act_.at->line_of(act_.which()).as_case());
  }
  operation_case(operation_case&& other) noexcept : operation_case{std::move(other.act_)} {}  // before it is awaited

  bool may_be_ready() const noexcept { return true; }  // only try_now(), under the lock, can tell
  std::uint32_t changes() const noexcept { return 0; }
  case_lock its_lock() noexcept { return place_ ? case_lock{place_->its_lock()} : case_lock{}; }
  // Whether a try may succeed. must_wait_again() makes the try, after the select has released its locks.
  bool try_now() noexcept { return !is_in_use() || asks_system_ || act_.may_try() || act_.at->is_closed(); }
  void finish() noexcept {}
  void prepare(select_wait& of, std::size_t index, root& self) noexcept {
    if (!place_) return;
    place_.emplace(act_.at->until_ready(act_.which()).as_case());
    place_->prepare(of, index, self);
  }
  void enter(const waiter& parked) noexcept override { place_->enter(parked); }
  void leave(bool was_in_line) noexcept override {
    if (place_) place_->leave(was_in_line);
  }
  result_type take() {
    if (came_.refused) std::rethrow_exception(failure_of(came_.refused, Act::name));
    if constexpr (gives_nothing)
      return {};
    else
      return act_.give(came_);
  }

  // Tells the select that a chosen case may be in vain: its try may find that it has to wait.
  static constexpr bool may_be_in_vain = true;
  bool must_wait_again() noexcept {
    if (!is_in_use() || act_.at->is_closed())
      came_ = {.refused = closed_here()};
    else if (asks_system_ || act_.may_try())
      came_ = act_.attempt();
    asks_system_ = false;
    return came_.must_wait;
  }
  void prepare_poll() noexcept { asks_system_ = true; }
  static bool turn_is_over() noexcept { return has_had_its_turn(); }

 private:
  void tell(wait_subjects& into) const noexcept override {
    static_cast<const select_case&>(*place_).tell(into);  // NOLINT: it is private there
  }
  // Begins the use of the descriptor with the first try. False: there is no descriptor, or it was closed before that.
  bool is_in_use() noexcept {
    if (!use_) use_.emplace(act_.at, act_.which(), Act::if_taken);
    return static_cast<bool>(*use_);
  }

  Act act_;
  std::optional<line> place_;
  std::optional<descriptor_use> use_;
  tried came_{.must_wait = true};
  bool asks_system_ = false;  // it tries whatever was reported: a select with an `otherwise` does not wait for a report
};

/// What a function such as stream::read returns: nothing happens until it is awaited.
template <class Act>
class [[nodiscard("nothing happens until it is awaited")]] operation
    : public task_inside<operation<Act>, typename Act::value_type> {
 public:
  using value_type = typename Act::value_type;
  using may_be_a_case = void;
  operation(Act act) noexcept : act_(std::move(act)) {}

  WEFT_COROUTINE_WRAPPER task<value_type> as_task() && { return run_operation<Act>(std::move(act_)); }
  operation_case<Act> as_case() && { return operation_case<Act>{std::move(act_)}; }

 private:
  Act act_;
};

// ---- reads and writes -------------------------------------------------------------------------------------------------------

inline constexpr const char* two_writers =
    "two tasks write to one stream at once: what each writes could come apart in the middle";

struct reading {
  using value_type = std::size_t;
  static constexpr const char* name = "read";
  static constexpr const char* if_taken =
      "two tasks read from one stream at once: which of them gets what would be chance";
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept { return into.empty() || at->may_try(which()); }
  tried attempt() const noexcept { return into.empty() ? tried{} : try_receive(*at, into); }
  static std::size_t give(const tried& got) noexcept { return got.size; }

  descriptor* at;
  std::span<std::byte> into;
};

struct writing_some {
  using value_type = std::size_t;
  static constexpr const char* name = "write";
  static constexpr const char* if_taken = two_writers;
  static constexpr direction which() noexcept { return direction::out; }
  bool may_try() const noexcept { return data.empty() || at->may_try(which()); }
  tried attempt() const noexcept { return data.empty() ? tried{} : try_send(*at, {&data, 1}); }
  static std::size_t give(const tried& sent) noexcept { return sent.size; }

  descriptor* at;
  std::span<const std::byte> data;
};

/// The parts from the first one on that is not empty.
template <class Part>
std::span<Part> without_leading_empty(std::span<Part> parts) noexcept {
  while (!parts.empty() && parts.front().empty()) parts = parts.subspan(1);
  return parts;
}

struct reading_parts {
  using value_type = std::size_t;
  static constexpr const char* name = reading::name;
  static constexpr const char* if_taken = reading::if_taken;
  static constexpr direction which() noexcept { return direction::in; }
  reading_parts(descriptor* from, std::span<const std::span<std::byte>> parts) noexcept
      : at{from}, into{without_leading_empty(parts)} {}
  bool may_try() const noexcept { return into.empty() || at->may_try(which()); }
  tried attempt() const noexcept { return into.empty() ? tried{} : try_receive(*at, into); }
  static std::size_t give(const tried& got) noexcept { return got.size; }

  descriptor* at;
  std::span<const std::span<std::byte>> into;
};

struct writing_some_parts {
  using value_type = std::size_t;
  static constexpr const char* name = writing_some::name;
  static constexpr const char* if_taken = two_writers;
  static constexpr direction which() noexcept { return direction::out; }
  writing_some_parts(descriptor* to, std::span<const std::span<const std::byte>> parts) noexcept
      : at{to}, data{without_leading_empty(parts)} {}
  bool may_try() const noexcept { return data.empty() || at->may_try(which()); }
  tried attempt() const noexcept { return data.empty() ? tried{} : try_send(*at, data); }
  static std::size_t give(const tried& sent) noexcept { return sent.size; }

  descriptor* at;
  std::span<const std::span<const std::byte>> data;
};

/// The unsent part of a write. Its destructor shuts down the stream's write side if some of the data was sent and some was not.
class unfinished_write {
 public:
  unfinished_write(descriptor& to, std::span<std::span<const std::byte>> parts) noexcept : to_{&to}, left_{parts} {
    skip_empty();
  }
  unfinished_write(const unfinished_write&) = delete;
  ~unfinished_write() {
    if (has_begun_ && !is_done()) cut();
  }

  bool is_done() const noexcept { return left_.empty(); }
  std::span<const std::span<const std::byte>> left() const noexcept { return left_; }
  void sent(std::size_t size) noexcept {
    has_begun_ = true;
    while (size != 0) {
      const std::size_t here = size < left_.front().size() ? size : left_.front().size();
      left_.front() = left_.front().subspan(here);
      size -= here;
      skip_empty();
    }
  }

 private:
  void skip_empty() noexcept { left_ = without_leading_empty(left_); }
  void cut() noexcept;

  descriptor* to_;
  std::span<std::span<const std::byte>> left_;
  bool has_begun_ = false;
};

// The parts that a whole write sends. The coroutine's frame holds them.
struct parts_of_caller {
  std::span<std::span<const std::byte>> given;
  std::span<std::span<const std::byte>> all() const noexcept { return given; }
};
struct one_part {
  std::span<const std::byte> given;
  std::span<std::span<const std::byte>> all() noexcept { return {&given, 1}; }
};

// Not inlined, since clang would make its frame a part of the caller's frame (allocation elision): each connection that waits for
// its next request would keep some 200 bytes for a write that is not under way.
template <class Parts>
[[gnu::noinline]] task<> write_all(descriptor* at, Parts parts) {
  const descriptor_use use{at, direction::out, two_writers};
  if (!use) co_await fail_with(failure_of(closed_here(), "write"));
  co_await check_stop();
  if (has_had_its_turn()) co_await yield();
  for (unfinished_write unfinished{*at, parts.all()}; !unfinished.is_done();) {
    if (at->may_try(direction::out))
      if (const tried sent = try_send(*at, unfinished.left()); !sent.must_wait) {
        if (sent.refused) co_await fail_with(failure_of(sent.refused, "write"));
        unfinished.sent(sent.size);
        continue;
      }
    co_await at->until_ready(direction::out);
    if (at->is_closed()) co_await fail_with(failure_of(closed_here(), "write"));
  }
}

/// A write of all the data. It can't be a case of a select: it might have sent a part when another case is chosen.
class [[nodiscard("nothing happens until it is awaited")]] writing : public task_inside<writing, void> {
 public:
  using is_whole_write = void;
  writing(descriptor* at, std::span<const std::byte> data) noexcept : at_{at}, data_{data} {}
  writing(descriptor* at, std::span<std::span<const std::byte>> parts) noexcept
      : at_{at}, parts_{parts}, is_of_parts_{true} {}

  WEFT_COROUTINE_WRAPPER task<> as_task() && {
    return is_of_parts_ ? write_all(at_, parts_of_caller{parts_}) : write_all(at_, one_part{data_});
  }

 private:
  descriptor* at_;
  std::span<const std::byte> data_;
  std::span<std::span<const std::byte>> parts_;
  bool is_of_parts_ = false;
};

/// What stream::write_zero_copy() returns.
task<> write_zero_copy(descriptor* at, std::span<const std::byte> data);
/// What stream::send_file() returns.
task<std::uint64_t> send_file(descriptor* at, file_part left);

}  // namespace weft::detail
