// The steps of a session: calls of OpenSSL between two buffers, under the lock. The tasks that call them are in operations.cpp.
#include "tls/session.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <weft/error.hpp>

namespace weft::detail {
namespace {

// An upper bound for what a record adds to its plaintext: header, padding, tag.
constexpr std::size_t around_record = 256;

// SSL_get_error() expects an empty queue before the call that it is about. Clearing writes to each of its places, also where it
// is empty, as it is but for the errors of other users on this thread.
void clear_errors() noexcept {
  if (ERR_peek_error() != 0) ERR_clear_error();
}

}  // namespace

// ---- between two buffers --------------------------------------------------------------------------------------------------

const BIO_METHOD* tls_session::bio_method() {
  static const BIO_METHOD* const one = [] {
    BIO_METHOD* const fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weft");
    if (fresh == nullptr) throw std::bad_alloc{};
    BIO_meth_set_read_ex(fresh, bio_read);
    BIO_meth_set_write_ex(fresh, bio_write);
    BIO_meth_set_ctrl(fresh, bio_control);
    return fresh;
  }();
  return one;
}

int tls_session::bio_read(BIO* self, char* into, std::size_t size, std::size_t* given) noexcept {
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

int tls_session::bio_write(BIO* self, const char* from, std::size_t size, std::size_t* taken) noexcept {
  auto& session = *static_cast<tls_session*>(BIO_get_data(self));
  BIO_clear_retry_flags(self);
  std::span<const std::byte> left = std::as_bytes(std::span{from, size});
  if (session.sends_uncopied_ && session.out_.size() == 0 && !session.is_sending_) {
    const tried sent = session.over_->try_send(left);
    session.not_sent_ = sent.refused;
    left = left.subspan(sent.size);
  }
  try {
    session.out_.reserve(session.out_.size() + left.size());
  } catch (...) {
    session.lacks_memory_ = true;
    return 0;
  }
  session.out_.put(left);
  *taken = size;
  return 1;
}

long tls_session::bio_control(BIO*, int what, long, void*) noexcept { return what == BIO_CTRL_FLUSH ? 1 : 0; }

tls_session::tls_session(std::shared_ptr<tls_context> by, std::unique_ptr<tls_transport> over, const std::string& host)
    : by_{std::move(by)}, over_{std::move(over)}, asked_{host, by_->sessions().age()}, openssl_{by_->begin(host)} {
  SSL_set_app_data(openssl_.get(), const_cast<tls_asked*>(&asked_));  // NOLINT: it is only read
  auto both = made<owned_bio>(BIO_new(bio_method()));
  BIO_set_data(both.get(), this);
  BIO_set_init(both.get(), 1);
  BIO* const raw = both.release();
  SSL_set_bio(openssl_.get(), raw, raw);
}

// OpenSSL does not resume a session that ended without close_notify. So this claims that both sides have sent it.
tls_session::~tls_session() { SSL_set_shutdown(openssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); }

// ---- steps ----------------------------------------------------------------------------------------------------------------

std::error_code tls_session::refusal() const noexcept { return is_closed_ ? closed_here() : failure_; }

// The error of a call of OpenSSL's that has failed, also stored in `failure_`. No error: the call needs more input.
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

// Moves the output to `sending_`. The calling task sends it after it has released the lock.
void tls_session::begin_to_send() noexcept {
  if (out_.size() == 0) return;
  is_sending_ = true;
  tickets_ = 0;
  std::swap(out_, sending_);
}

bool tls_session::has_sent() noexcept {
  const guard held{lock_};
  sending_.consume(sending_.size());
  if (sending_.capacity() > kept_room) sending_ = byte_buffer{kept_room};
  is_sending_ = false;
  if (out_.size() == 0)
    std::swap(out_, sending_);  // so that one of them has memory, unless tasks write while one sends
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
  tickets_ = 0;
  if (!is_sending_ && !is_ended_) out_.consume(over_->try_send(out_.held()).size);
  if (out_.size() > most_answers && !failure_) failure_ = tls::errc::flooded;
}

tried tls_session::must_wait_for_input(std::uint64_t& tried_at) const noexcept {
  tried_at = fills_;
  return {.must_wait = true};
}

tried tls_session::handshake(std::uint64_t& tried_at) {
  const guard held{lock_};
  if (const std::error_code refused = refusal()) return {.refused = refused};
  if (input_has_ended_ && in_.empty()) return {.refused = failure_ = tls::errc::truncated};
  clear_errors();
  const int result = SSL_do_handshake(openssl_.get());
  tried got{};
  if (result != 1) {
    got.refused = error_of(result);
    if (!got.refused) got = must_wait_for_input(tried_at);
  }
  // Also after a failure, so that the alert tells the peer why. Not at the end of a TLS 1.3 server's handshake: then the output
  // is session tickets, and the peer may not be reading yet. They go with the next write, or before a read waits.
  if (result == 1 && by_->is_server() && SSL_version(openssl_.get()) >= TLS1_3_VERSION)
    tickets_ = out_.size();
  else
    begin_to_send();
  return got;
}

// Whether SSL_read() would only find that it must wait, for which it allocates a buffer of a record's size, and frees it.
bool tls_session::has_nothing_to_read() const noexcept {
  SSL* const its = openssl_.get();
  return (is_filling_ || in_.empty()) && !input_has_ended_ && SSL_has_pending(its) == 0 &&
         SSL_is_init_finished(its) != 0 && (SSL_get_shutdown(its) & SSL_RECEIVED_SHUTDOWN) == 0;
}

tried tls_session::read(std::span<std::byte> into, std::uint64_t& tried_at) {
  const guard held{lock_};
  if (const std::error_code refused = refusal()) return {.refused = refused};
  SSL* const its = openssl_.get();
  if (has_nothing_to_read()) {
    send_at_once();
    if (failure_) return {.refused = failure_};
    return must_wait_for_input(tried_at);
  }
  std::size_t size = 0;
  clear_errors();
  const int result = SSL_read_ex(its, into.data(), into.size(), &size);
  if (result == 1) {
    if (out_.size() != tickets_) send_at_once();
    return {.size = size};
  }
  if ((SSL_get_shutdown(its) & SSL_RECEIVED_SHUTDOWN) != 0 && SSL_get_error(its, result) == SSL_ERROR_ZERO_RETURN)
    return {};
  const std::error_code refused = error_of(result);
  send_at_once();  // also the alert of a failure
  if (refused) return {.refused = refused};
  if (failure_) return {.refused = failure_};
  if (input_has_ended_) return {.refused = tls::errc::truncated};
  return must_wait_for_input(tried_at);
}

tried tls_session::encrypt(std::span<const std::byte> data, std::size_t most, std::uint64_t& tried_at) {
  const guard held{lock_};
  if (const std::error_code refused = refusal()) return {.refused = refused};
  if (is_ended_) return {.refused = closed_here()};
  const std::size_t size = std::min(data.size(), most);
  out_.reserve(out_.size() + size + (1 + size / record) * around_record);
  std::size_t taken = 0;
  not_sent_ = {};
  while (taken != size) {
    std::size_t written = 0;
    clear_errors();
    sends_uncopied_ = taken == 0 && size <= record;  // several records go by one call of the system's, from `out_`
    const int result = SSL_write_ex(openssl_.get(), data.data() + taken, size - taken, &written);
    sends_uncopied_ = false;
    if (result != 1) {
      const std::error_code refused = error_of(result);
      begin_to_send();
      if (refused) return {.refused = refused};
      if (taken != 0) break;
      // Only a part of a handshake message was received, and OpenSSL needs the rest of it first. Then the caller tries again.
      if (input_has_ended_) return {.refused = tls::errc::truncated};
      return must_wait_for_input(tried_at);
    }
    taken += written;
  }
  if (not_sent_) {
    out_.consume(out_.size());
    is_ended_ = has_lost_ = true;
    return {.refused = not_sent_};
  }
  begin_to_send();
  if (!is_sending_ && out_.capacity() > kept_room) out_ = byte_buffer{kept_room};  // all was sent uncopied
  return {.size = taken};
}

tried tls_session::end(std::uint64_t& tried_at) {
  const guard held{lock_};
  if (const std::error_code refused = refusal()) return {.refused = refused};
  if (has_lost_) return {.refused = closed_here()};
  if (is_ended_) return {};
  out_.reserve(out_.size() + around_record);
  clear_errors();
  // A handshake message may have been received in part, as in encrypt(). SSL_shutdown() does not read the rest by itself.
  if (SSL_in_init(openssl_.get()) != 0)
    if (const int ready = SSL_do_handshake(openssl_.get()); ready != 1) {
      const std::error_code refused = error_of(ready);
      begin_to_send();
      if (refused) return {.refused = refused};
      if (input_has_ended_) return {.refused = tls::errc::truncated};
      return must_wait_for_input(tried_at);
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

}  // namespace weft::detail
