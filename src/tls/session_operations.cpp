// The operations of a TLS stream: tasks that call the steps of its session, and fill and send its buffers without its lock.
#include <chrono>
#include <utility>
#include <weft/error.hpp>
#include <weft/hop.hpp>
#include <weft/nothrow.hpp>
#include <weft/unix.hpp>
#include <weft/with.hpp>

#include "tls/session.hpp"

namespace weft::detail {
namespace {

constexpr std::size_t write_chunk = 4 * tls_session::record;

constexpr const char* two_readers =
    "two tasks read from one TLS stream at once: which of them gets what would be chance";
constexpr const char* two_tls_writers =
    "two tasks write to one TLS stream at once: what each writes could come apart in the middle";

// Reads from a socket into a session's input. The input's buffer is freed before each wait, and allocated when the socket is
// readable.
struct receiving_records {
  using value_type = std::size_t;
  static constexpr const char* name = "read";
  static constexpr const char* if_taken = two_readers;
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept {
    const bool may = at->may_try(which());
    if (!may) into->release();
    return may;
  }
  tried attempt() const noexcept {
    const std::span<std::byte> room = into->room();
    if (room.empty()) return {.refused = std::make_error_code(std::errc::not_enough_memory)};
    const tried got = try_receive(*at, room);
    if (got.must_wait)
      into->release();
    else
      into->filled(got.size);
    return got;
  }
  static std::size_t give(const tried& got) noexcept { return got.size; }

  descriptor* at;
  tls_input* into;
};

}  // namespace

task<std::size_t> tls_fill(net::stream& from, tls_input& into) {
  return run_operation(receiving_records{socket_access::of(from), &into});
}

tried tls_try_send(net::stream& to, std::span<const std::byte> data) noexcept {
  descriptor* const at = socket_access::of(to);
  const descriptor_use use{at};
  tried sent{};
  while (use && sent.size != data.size()) {
    const std::span<const std::byte> left = data.subspan(sent.size);
    const tried got = detail::try_send(*at, {&left, 1});
    sent.refused = got.refused;
    if (got.must_wait || got.refused) break;
    sent.size += got.size;
  }
  return sent;
}

namespace {

// Separate functions, since g++ 12 destroys the temporaries of a conditional expression in a co_await twice.
std::exception_ptr handshake_failure(const std::error_code& why, const std::string& host) {
  return std::make_exception_ptr(error{why, "TLS handshake with", host.empty() ? std::string_view{"a client"} : host});
}
std::exception_ptr not_sent(const result<void>& how) {
  return how.is_stopped() ? failure_of(closed_here(), "write") : how.exception();
}

// Sends the output of a step, and what is put behind it meanwhile. A failed or stopped send ends the session's output.
task<> send_all(tls_session& of) {
  while (!of.to_send().empty()) {
    auto send = of.transport().send(of.to_send());
    auto sent = co_await as_result(std::move(send));
    if (!sent.has_value()) [[unlikely]] {
      of.has_not_sent(sent.is_stopped());
      co_await check_stop();
      co_await fail_with(not_sent(sent));
    }
    of.has_sent();
  }
}

// Ends a session's output if its owner leaves with some of it unsent, for want of memory: a part of a record may have gone.
class output_of_write {
 public:
  explicit output_of_write(tls_session& of) noexcept : of_{of} {}
  output_of_write(const output_of_write&) = delete;
  ~output_of_write() {
    if (is_there()) of_.has_not_sent(false);
  }
  bool is_there() const noexcept { return !of_.to_send().empty(); }

 private:
  tls_session& of_;
};

// Waits for more input after a step that had to wait after `tried_at` fills: fills the input, or waits for another task's fill.
// The caller then repeats the step.
task<> fill(tls_session& of, std::uint64_t tried_at) {
  const tls_session::turn turn = of.next_turn(tried_at);
  if (turn == tls_session::turn::try_again) co_return;
  if (turn == tls_session::turn::wait) {
    co_await of.has_been_filled.wait();
    co_return;
  }
  struct filled {
    tls_session& of;
    std::optional<std::size_t> came;
    explicit filled(tls_session& by) noexcept : of{by} {}
    filled(const filled&) = delete;
    ~filled() { of.has_filled(came); }
  } end{of};
  auto filling = of.transport().fill(of.input());
  end.came = co_await nothrow(std::move(filling));
}

// fill() for a write. A stop closes the session, as a stop of any write does.
task<> fill_to_write(tls_session& of, std::uint64_t tried_at) {
  auto filling = as_result(fill(of, tried_at));
  const auto filled = co_await std::move(filling);
  if (filled.has_value()) co_return;
  if (filled.is_stopped()) of.close();
  co_await check_stop();
  co_await fail_with(not_sent(filled));
}

std::exception_ptr not_begun(const char* operation) { return failure_of(closed_here(), operation); }

}  // namespace

tls_session_of tls_begin(std::shared_ptr<tls_context> by, std::unique_ptr<tls_transport> over,
                         const std::string& host) {
  return std::make_shared<tls_session>(std::move(by), std::move(over), host);
}

task<> tls_handshake(tls_session_of of) {
  for (std::uint64_t tried_at = 0;;) {
    const tried step = of->handshake(tried_at);
    if (step.refused) {
      static_cast<void>(co_await as_result(send_all(*of)));  // the alert that tells the peer why
      co_await fail_with(handshake_failure(step.refused, of->host()));
    }
    co_await nothrow(send_all(*of));
    if (!step.must_wait) co_return;
    co_await nothrow(fill(*of, tried_at));
  }
}

task<std::size_t> tls_read(tls_session_of of, std::span<std::byte> into) {
  if (!of) co_await fail_with(not_begun("read"));
  const one_at_a_time reading{of->is_read, two_readers};
  co_await check_stop();
  if (has_had_its_turn()) co_await yield();
  if (into.empty()) co_return std::size_t{0};
  for (std::uint64_t tried_at = 0;;) {
    const tried got = of->read(into, tried_at);
    if (got.refused) co_await fail_with(failure_of(got.refused, "read"));
    if (!got.must_wait) co_return got.size;
    co_await nothrow(fill(*of, tried_at));
  }
}

task<std::size_t> tls_write_some(tls_session_of of, std::span<const std::byte> data) {
  if (!of) co_await fail_with(not_begun("write"));
  const one_at_a_time writing{of->is_written, two_tls_writers};
  co_await check_stop();
  if (has_had_its_turn()) co_await yield();
  if (data.empty()) co_return std::size_t{0};
  const output_of_write output{*of};
  for (std::uint64_t tried_at = 0;;) {
    const tried taken = of->encrypt(data, tls_session::record, tried_at);
    if (taken.refused) co_await fail_with(failure_of(taken.refused, "write"));
    if (output.is_there()) co_await nothrow(send_all(*of));
    if (!taken.must_wait) co_return taken.size;
    co_await nothrow(fill_to_write(*of, tried_at));
  }
}

task<> tls_write(tls_session_of of, std::span<const std::byte> data) {
  if (!of) co_await fail_with(not_begun("write"));
  const one_at_a_time writing{of->is_written, two_tls_writers};
  co_await check_stop();
  if (has_had_its_turn()) co_await yield();
  const output_of_write output{*of};
  for (std::uint64_t tried_at = 0; !data.empty();) {
    const tried taken = of->encrypt(data, write_chunk, tried_at);
    if (taken.refused) co_await fail_with(failure_of(taken.refused, "write"));
    data = data.subspan(taken.size);
    if (output.is_there()) co_await nothrow(send_all(*of));
    if (taken.must_wait) co_await nothrow(fill_to_write(*of, tried_at));
  }
}

task<> tls_shutdown(tls_session_of of) {
  if (!of) co_await fail_with(not_begun("shut down"));
  const one_at_a_time writing{of->is_written, two_tls_writers};
  co_await check_stop();
  const output_of_write output{*of};
  for (std::uint64_t tried_at = 0;;) {
    const tried ended = of->end(tried_at);
    if (ended.refused) co_await fail_with(failure_of(ended.refused, "shut down"));
    if (output.is_there()) co_await nothrow(send_all(*of));
    if (!ended.must_wait) co_return;
    co_await nothrow(fill_to_write(*of, tried_at));
  }
}

void tls_close(tls_session& of) noexcept { of.close(); }
bool tls_is_open(const tls_session& of) noexcept { return of.is_open(); }
std::optional<tls::certificate_info> tls_peer_certificate(tls_session& of) { return of.peer_certificate(); }
std::string tls_fact_of(tls_session& of, tls_fact which) { return of.fact(which); }
bool tls_is_resumed(tls_session& of) noexcept { return of.is_resumed(); }

task<tls::stream<net::stream>> tls_connect(net::connect_options options, std::shared_ptr<tls_context> by,
                                           std::string host, std::string service) {
  net::stream connected = co_await nothrow(net::connect(options, host, service));
  co_return co_await nothrow(tls_over(std::move(by), std::move(connected), std::move(host)));
}

void expect_sense(const tls::serve_options& options) noexcept {
  WEFT_EXPECTS(options.max_handshakes != 0,
               "a TLS server with max_handshakes = 0 was asked for: it could serve nobody");
  expect_sense(options.net);
}

net::serve_options with_handshake_timeout(net::serve_options options) noexcept {
  if (options.handshake_timeout == net::serve_options{}.handshake_timeout)
    options.handshake_timeout = std::chrono::seconds{10};
  return options;
}

}  // namespace weft::detail
