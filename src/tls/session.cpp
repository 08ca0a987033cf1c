// Long because the steps of a session and the tasks that take them are one protocol.
#include "tls/session.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <weft/error.hpp>
#include <weft/hop.hpp>
#include <weft/nothrow.hpp>
#include <weft/unix.hpp>
#include <weft/with.hpp>

namespace weft::detail {
namespace {

constexpr std::size_t record = std::size_t{16} * 1024, piece = 4 * record;
// A record's header, tag and the like are less than this.
constexpr std::size_t around_record = 256;

constexpr const char* two_readers =
    "two tasks read from one TLS stream at once: which of them gets what would be chance";
constexpr const char* two_tls_writers =
    "two tasks write to one TLS stream at once: what each writes could come apart in the middle";

// A read of a socket into a session's input, which gets memory only when there is something to read.
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

std::size_t tls_try_send(net::stream& to, std::span<const std::byte> data) noexcept {
  descriptor* const at = socket_access::of(to);
  const descriptor_use use{at};
  if (!use) return 0;
  std::size_t sent = 0;
  while (sent != data.size()) {
    const std::span<const std::byte> left = data.subspan(sent);
    const tried got = detail::try_send(*at, {&left, 1});
    if (got.must_wait || got.refused) break;
    sent += got.size;
  }
  return sent;
}

// ---- between two buffers --------------------------------------------------------------------------------------------------

const BIO_METHOD* tls_session::in_memory() {
  static const BIO_METHOD* const one = [] {
    BIO_METHOD* const fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weft");
    if (fresh == nullptr) throw std::bad_alloc{};
    BIO_meth_set_read_ex(fresh, give);
    BIO_meth_set_write_ex(fresh, take);
    BIO_meth_set_ctrl(fresh, control);
    return fresh;
  }();
  return one;
}

int tls_session::give(BIO* self, char* into, std::size_t size, std::size_t* given) noexcept {
  auto& session = *static_cast<tls_session*>(BIO_get_data(self));
  BIO_clear_retry_flags(self);
  if (session.is_filling_ || session.in_.empty()) {
    BIO_set_retry_read(self);
    return 0;
  }
  const std::span<const std::byte> held = session.in_.held();
  *given = std::min(size, held.size());
  std::memcpy(into, held.data(), *given);
  session.in_.consume(*given);
  return 1;
}

int tls_session::take(BIO* self, const char* from, std::size_t size, std::size_t* taken) noexcept {
  auto& session = *static_cast<tls_session*>(BIO_get_data(self));
  BIO_clear_retry_flags(self);
  try {
    session.out_.reserve(session.out_.size() + size);
  } catch (...) {
    session.lacks_memory_ = true;
    return 0;
  }
  session.out_.put(std::as_bytes(std::span{from, size}));
  *taken = size;
  return 1;
}

long tls_session::control(BIO*, int what, long, void*) noexcept { return what == BIO_CTRL_FLUSH ? 1 : 0; }

tls_session::tls_session(std::shared_ptr<tls_context> by, std::unique_ptr<tls_transport> over, const std::string& host)
    : by_{std::move(by)}, over_{std::move(over)}, asked_{host, by_->sessions().age()}, openssl_{by_->begin(host)} {
  SSL_set_app_data(openssl_.get(), const_cast<tls_asked*>(&asked_));  // NOLINT: it is only read
  auto both = made<owned_bio>(BIO_new(in_memory()));
  BIO_set_data(both.get(), this);
  BIO_set_init(both.get(), 1);
  BIO* const raw = both.release();
  SSL_set_bio(openssl_.get(), raw, raw);
}

// OpenSSL takes a session for broken that has not ended by close_notify, and would not resume it.
tls_session::~tls_session() { SSL_set_shutdown(openssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); }

// ---- steps ----------------------------------------------------------------------------------------------------------------

std::error_code tls_session::refusal() const noexcept { return is_closed_ ? closed_here() : failure_; }

// Of a call that has not done what it was to do. Nothing: it wants input.
std::error_code tls_session::error_of(int result) noexcept {
  SSL* const its = openssl_.get();
  const int how = SSL_get_error(its, result);
  if (how == SSL_ERROR_WANT_READ) return {};
  if (lacks_memory_) {
    failure_ = std::make_error_code(std::errc::not_enough_memory);
  } else if (const long found = SSL_get_verify_result(its);
             found != X509_V_OK && ERR_GET_LIB(ERR_peek_error()) == ERR_LIB_SSL &&
             ERR_GET_REASON(ERR_peek_error()) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    failure_ = verification_error(found);
  } else {
    failure_ = take_tls_error();
  }
  ERR_clear_error();
  return failure_;
}

// What was gathered is sent by who has the lock now.
void tls_session::begin_to_send() noexcept {
  if (out_.size() == 0) return;
  is_sending_ = true;
  std::swap(out_, sending_);
}

bool tls_session::has_sent() noexcept {
  const guard held{lock_};
  sending_.consume(sending_.size());
  if (sending_.capacity() > kept_room) sending_ = byte_buffer{kept_room};
  is_sending_ = false;
  begin_to_send();
  return is_sending_;
}

void tls_session::has_not_sent(bool was_stopped) noexcept {
  const guard held{lock_};
  sending_.consume(sending_.size());
  is_sending_ = false;
  is_ended_ = has_lost_ = true;
  if (!was_stopped) return;
  is_closed_ = true;
  over_->close();
}

void tls_session::send_at_once() noexcept {
  if (out_.size() == 0) return;
  if (!is_sending_ && !is_ended_) out_.consume(over_->try_send(out_.held()));
  if (out_.size() > most_answers && !failure_) failure_ = tls::errc::flooded;
}

tried tls_session::waits(std::uint64_t& tried_at) const noexcept {
  tried_at = fills_;
  return {.must_wait = true};
}

tried tls_session::handshake(std::uint64_t& tried_at) {
  const guard held{lock_};
  if (const std::error_code refused = refusal()) return {.refused = refused};
  if (input_has_ended_ && in_.empty()) return {.refused = failure_ = tls::errc::truncated};
  ERR_clear_error();
  const int result = SSL_do_handshake(openssl_.get());
  tried got{};
  if (result != 1) {
    got.refused = error_of(result);
    if (!got.refused) got = waits(tried_at);
  }
  // Also where it has failed, so that the peer hears why. Not what a server of TLS 1.3 has left at the end: that are tickets, which
  // its peer need not be reading yet. They go with what is sent next.
  const bool are_tickets = result == 1 && by_->is_server() && SSL_version(openssl_.get()) >= TLS1_3_VERSION;
  if (!are_tickets) begin_to_send();
  return got;
}

tried tls_session::read(std::span<std::byte> into, std::uint64_t& tried_at) {
  const guard held{lock_};
  if (const std::error_code refused = refusal()) return {.refused = refused};
  SSL* const its = openssl_.get();
  std::size_t size = 0;
  ERR_clear_error();
  const int result = SSL_read_ex(its, into.data(), into.size(), &size);
  if (result == 1) {
    send_at_once();
    return {.size = size};
  }
  if ((SSL_get_shutdown(its) & SSL_RECEIVED_SHUTDOWN) != 0 && SSL_get_error(its, result) == SSL_ERROR_ZERO_RETURN)
    return {};
  const std::error_code refused = error_of(result);
  send_at_once();  // an alert, too
  if (refused) return {.refused = refused};
  if (failure_) return {.refused = failure_};
  if (input_has_ended_) return {.refused = tls::errc::truncated};
  return waits(tried_at);
}

tried tls_session::encrypt(std::span<const std::byte> data, std::size_t most, std::uint64_t& tried_at) {
  const guard held{lock_};
  if (const std::error_code refused = refusal()) return {.refused = refused};
  if (is_ended_) return {.refused = closed_here()};
  const std::size_t size = std::min(data.size(), most);
  out_.reserve(out_.size() + size + (1 + size / record) * around_record);
  std::size_t taken = 0;
  while (taken != size) {
    std::size_t written = 0;
    ERR_clear_error();
    const int result = SSL_write_ex(openssl_.get(), data.data() + taken, size - taken, &written);
    if (result != 1) {
      const std::error_code refused = error_of(result);
      begin_to_send();
      if (refused) return {.refused = refused};
      if (taken != 0) break;
      // A message about the session has come in part, and OpenSSL wants the rest of it first. The data is asked for again then.
      if (input_has_ended_) return {.refused = tls::errc::truncated};
      return waits(tried_at);
    }
    taken += written;
  }
  begin_to_send();
  return {.size = taken};
}

tried tls_session::end(std::uint64_t& tried_at) {
  const guard held{lock_};
  if (const std::error_code refused = refusal()) return {.refused = refused};
  if (has_lost_) return {.refused = closed_here()};
  if (is_ended_) return {};
  out_.reserve(out_.size() + around_record);
  ERR_clear_error();
  // As in a write, but SSL_shutdown() does not take what has come by itself.
  if (SSL_in_init(openssl_.get()) != 0)
    if (const int ready = SSL_do_handshake(openssl_.get()); ready != 1) {
      const std::error_code refused = error_of(ready);
      begin_to_send();
      if (refused) return {.refused = refused};
      if (input_has_ended_) return {.refused = tls::errc::truncated};
      return waits(tried_at);
    }
  const int result = SSL_shutdown(openssl_.get());
  is_ended_ = true;
  if (result < 0)
    if (const std::error_code refused = error_of(result)) return {.refused = refused};
  begin_to_send();
  return {};
}

tls_session::turn tls_session::next_turn(std::uint64_t tried_at) noexcept {
  const guard held{lock_};
  if (fills_ != tried_at) return turn::try_again;
  if (!is_filling_) {
    is_filling_ = true;
    return turn::fill;
  }
  is_fill_awaited_ = true;
  return turn::wait;
}

void tls_session::has_filled(std::optional<std::size_t> size) noexcept {
  bool is_awaited;
  {
    const guard held{lock_};
    is_filling_ = false;
    is_awaited = std::exchange(is_fill_awaited_, false);
    if (size) ++fills_;
    if (size == std::size_t{0}) input_has_ended_ = true;
  }
  if (is_awaited) has_been_filled.set();
}

void tls_session::close() noexcept {
  const guard held{lock_};
  if (std::exchange(is_closed_, true)) return;
  over_->close();
}

bool tls_session::is_open() const noexcept {
  const guard held{lock_};
  return !is_closed_;
}

// ---- operations -----------------------------------------------------------------------------------------------------------

namespace {

// Functions of their own, since g++ 12 destroys a conditional's temporaries twice that stands in a co_await.
std::exception_ptr handshake_failure(const std::error_code& why, const std::string& host) {
  return std::make_exception_ptr(error{why, "TLS handshake with", host.empty() ? std::string_view{"a client"} : host});
}
std::exception_ptr not_sent(const result<void>& how) {
  return how.is_stopped() ? failure_of(closed_here(), "write") : how.exception();
}

// Sends what a step has left to send.
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

// Has a step tried again that was tried behind `tried_at` fills, and had to wait: behind a fill of its own, or another task's.
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

// The same for who writes, so that a stop does what it does to any write.
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
      static_cast<void>(co_await as_result(send_all(*of)));  // why it has failed
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
  for (std::uint64_t tried_at = 0;;) {
    const tried taken = of->encrypt(data, record, tried_at);
    if (taken.refused) co_await fail_with(failure_of(taken.refused, "write"));
    co_await nothrow(send_all(*of));
    if (!taken.must_wait) co_return taken.size;
    co_await nothrow(fill_to_write(*of, tried_at));
  }
}

task<> tls_write(tls_session_of of, std::span<const std::byte> data) {
  if (!of) co_await fail_with(not_begun("write"));
  const one_at_a_time writing{of->is_written, two_tls_writers};
  co_await check_stop();
  if (has_had_its_turn()) co_await yield();
  for (std::uint64_t tried_at = 0; !data.empty();) {
    const tried taken = of->encrypt(data, piece, tried_at);
    if (taken.refused) co_await fail_with(failure_of(taken.refused, "write"));
    data = data.subspan(taken.size);
    co_await nothrow(send_all(*of));
    if (taken.must_wait) co_await nothrow(fill_to_write(*of, tried_at));
  }
}

task<> tls_shutdown(tls_session_of of) {
  if (!of) co_await fail_with(not_begun("shut down"));
  const one_at_a_time writing{of->is_written, two_tls_writers};
  co_await check_stop();
  for (std::uint64_t tried_at = 0;;) {
    const tried ended = of->end(tried_at);
    if (ended.refused) co_await fail_with(failure_of(ended.refused, "shut down"));
    co_await nothrow(send_all(*of));
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
