// A TLS session: an SSL object of OpenSSL's between two buffers in memory, under a lock.
//
// Output. Only one task sends at a time (`is_sending_`): the one that does the handshake, writes, or shuts the session down.
// OpenSSL encrypts into `out_`. The task swaps that into `sending_`, and sends it without holding the lock. A write of one
// record first sends what the transport takes without waiting, from OpenSSL's buffer (`sends_uncopied_`); the rest goes by
// `out_`. During a read OpenSSL may have to answer a message, such as a key update. A read must not wait to send the answer: if
// it were stopped while it waits, a record would be cut. So it sends what the transport takes without waiting, if no task is
// sending, and the rest stays in `out_` and goes before whatever is sent next. A peer that asks for more and more answers and
// reads none ends the session (`flooded`).
//
// Input. One task at a time fills `in_`, without holding the lock and only while it is empty. OpenSSL consumes it under the lock,
// and is given nothing while a fill is under way (`is_filling_`). So a read that waits for input has taken nothing. Usually the
// reading task fills. But OpenSSL writes nothing after it has received a part of a handshake message, such as a ticket, until it
// has the rest, so a writing task may have to fill, too. A task that finds another one filling waits for the end of that fill,
// and repeats its own step before it fills (`fills_` counts them): that step may succeed by now, and the peer may send nothing
// more before it has received this side's write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <weft/detail/io/byte_buffer.hpp>
#include <weft/detail/net/operation.hpp>
#include <weft/event.hpp>
#include <weft/tls.hpp>

#include "tls/context.hpp"
#include "tls/openssl.hpp"

namespace weft::detail {

class tls_session {
 public:
  tls_session(std::shared_ptr<tls_context> by, std::unique_ptr<tls_transport> over, const std::string& host);
  tls_session(const tls_session&) = delete;
  ~tls_session();

  tls_transport& transport() noexcept { return *over_; }

  static constexpr std::size_t record = std::size_t{16} * 1024;  // the most plaintext in one record

  // What a task does whose step must wait. `tried_at` is the number of fills before that step. `try_again`: there was another
  // fill since. `fill`: the task fills, and calls has_filled(). `wait`: another task is filling; it awaits has_been_filled.
  enum class turn : std::uint8_t { try_again, fill, wait };
  turn next_turn(std::uint64_t tried_at) noexcept;
  tls_input& input() noexcept { return in_; }                 // used by the task that fills it
  void has_filled(std::optional<std::size_t> size) noexcept;  // no value: the fill was stopped or has failed
  auto_event has_been_filled;                                 // one task waits at most: the other direction's
  const std::string& host() const noexcept { return asked_.host; }

  // Each of these takes one step under the lock. If the result is `must_wait`, the step needs more input than the fills so far
  // have brought, whose number is stored in `tried_at`.
  tried handshake(std::uint64_t& tried_at);
  tried read(std::span<std::byte> into, std::uint64_t& tried_at);
  // Encrypts at most `most` bytes, and gives how many it has taken. Throws std::bad_alloc; then it has taken none.
  tried encrypt(std::span<const std::byte> data, std::size_t most, std::uint64_t& tried_at);
  tried end(std::uint64_t& tried_at);  // encrypts close_notify

  // The bytes that the task which took a step must send now.
  std::span<const std::byte> to_send() const noexcept { return sending_.held(); }
  // After that: true if there is more to send.
  bool has_sent() noexcept;
  void has_not_sent(bool was_stopped) noexcept;

  void close() noexcept;
  bool is_open() const noexcept;

  std::optional<tls::certificate_info> peer_certificate();
  std::string fact(tls_fact which);
  bool is_resumed() noexcept;

  bool is_read = false, is_written = false;  // whether a task reads, and whether one writes

 private:
  using guard = std::lock_guard<std::mutex>;
  static constexpr std::size_t most_answers = std::size_t{16} * 1024, kept_room = 512;

  static const BIO_METHOD* bio_method();
  static int bio_read(BIO* self, char* into, std::size_t size, std::size_t* given) noexcept;
  static int bio_write(BIO* self, const char* from, std::size_t size, std::size_t* taken) noexcept;
  static long bio_control(BIO* self, int what, long number, void* pointer) noexcept;

  // All of these are called under the lock.
  void begin_to_send() noexcept;
  std::error_code refusal() const noexcept;
  std::error_code error_of(int result) noexcept;
  void send_at_once() noexcept;
  bool has_nothing_to_read() const noexcept;
  tried must_wait_for_input(std::uint64_t& tried_at) const noexcept;

  const std::shared_ptr<tls_context> by_;
  const std::unique_ptr<tls_transport> over_;
  const tls_asked asked_;

  mutable std::mutex lock_;
  tls_input in_;
  bool is_filling_ = false;
  bool is_fill_awaited_ = false;  // the other direction's task waits for the end of the fill
  std::uint64_t fills_ = 0;
  byte_buffer out_{kept_room};
  byte_buffer sending_{kept_room};  // used without the lock by the task that sends
  bool sends_uncopied_ = false;     // whether a record that OpenSSL writes now may be sent from its own buffer
  std::error_code not_sent_;        // why such a record could not be sent
  std::size_t tickets_ = 0;         // the size of `out_` if a server's session tickets are all that it holds
  bool is_sending_ = false;
  bool is_closed_ = false;        // both directions
  bool is_ended_ = false;         // close_notify was encrypted, or sending has failed: no more is written
  bool has_lost_ = false;         // a send has failed: close_notify would falsely claim that all was sent
  bool input_has_ended_ = false;  // the transport has ended
  bool lacks_memory_ = false;     // OpenSSL's output was dropped for want of memory
  std::error_code failure_;       // once set, every step fails with it
  owned_ssl openssl_;
};

}  // namespace weft::detail
