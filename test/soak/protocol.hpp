// What the server of a soak and its clients say to each other. A connection begins with a greeting of two bytes: how it wants
// to be handled, and whether its client is counted. Then come requests: a header and a payload. An answer is a header, which
// repeats the number of the request and has the checksum of its payload, and so many bytes that follow from these two. So a
// client sees that an answer is whole, right and in order, and keeps no more of a request than three numbers.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace soak {

// ---- greetings --------------------------------------------------------------------------------------------------------------

inline constexpr char by_task = 't', by_fiber = 'f', by_lent_buffers = 'r';
inline constexpr char counted = 'c', not_counted = 'n';  // whether each of its requests is answered or a failure
inline constexpr std::size_t greeting_bytes = 2;

// ---- requests and answers ---------------------------------------------------------------------------------------------------

struct header {
  std::uint32_t magic = 0;
  std::uint32_t number = 0;  // of the request, on its connection
  std::uint32_t size = 0;    // of what follows
  std::uint32_t checksum =
      0;  // of an answer: that of the request's payload; of a request: how many bytes the answer has
};
static_assert(sizeof(header) == 16);

inline constexpr std::uint32_t request_magic = 0x57'65'66'74, answer_magic = 0x74'66'65'57;
inline constexpr std::uint32_t largest_payload = 64 * 1024, largest_answer = 1024 * 1024;

inline bool is_request(const header& one) noexcept {
  return one.magic == request_magic && one.size <= largest_payload && one.checksum <= largest_answer;
}

/// Of the bytes so far, in order: FNV-1a.
class checksum {
 public:
  void add(std::span<const std::byte> some) noexcept {
    for (const std::byte one : some) sum_ = (sum_ ^ static_cast<std::uint32_t>(one)) * 16'777'619;
  }
  std::uint32_t value() const noexcept { return sum_; }

 private:
  std::uint32_t sum_ = 2'166'136'261;
};

/// The bytes of an answer, one piece after the other.
class answer_bytes {
 public:
  answer_bytes(std::uint32_t number, std::uint32_t sum) noexcept : seed_{std::uint64_t{number} << 32 | sum} {}

  void fill(std::span<std::byte> into) noexcept {
    for (std::byte& one : into) one = next();
  }
  /// Whether these are the next ones.
  bool matches(std::span<const std::byte> some) noexcept {
    return std::all_of(some.begin(), some.end(), [this](std::byte one) { return one == next(); });
  }

 private:
  std::byte next() noexcept {
    if (left_ == 0) {  // SplitMix64
      word_ = seed_ += 0x9e37'79b9'7f4a'7c15;
      word_ = (word_ ^ word_ >> 30) * 0xbf58'476d'1ce4'e5b9;
      word_ = (word_ ^ word_ >> 27) * 0x94d0'49bb'1331'11eb;
      left_ = 8;
    }
    const auto out = static_cast<std::byte>(word_ & 0xff);
    word_ >>= 8;
    --left_;
    return out;
  }

  std::uint64_t seed_, word_ = 0;
  int left_ = 0;
};

/// Puts together what comes in pieces.
class request_parser {
 public:
  struct request {
    header head;
    std::uint32_t sum;  // of its payload
  };

  /// Takes bytes off the front, up to the end of a request, which it gives. Nothing: it has taken all, or is_broken().
  std::optional<request> take(std::span<const std::byte>& from) noexcept {
    while (!is_broken_) {
      if (have_ < sizeof(header)) {
        const std::size_t some = std::min(from.size(), sizeof(header) - have_);
        if (some != 0) std::memcpy(reinterpret_cast<std::byte*>(&head_) + have_, from.data(), some);
        from = from.subspan(some);
        have_ += some;
        if (have_ < sizeof(header)) return std::nullopt;
        is_broken_ = !is_request(head_);
        continue;
      }
      const std::size_t some = std::min(from.size(), sizeof(header) + head_.size - have_);
      sum_.add(from.first(some));
      from = from.subspan(some);
      have_ += some;
      if (have_ < sizeof(header) + head_.size) return std::nullopt;
      const request whole{head_, sum_.value()};
      have_ = 0;
      sum_ = {};
      return whole;
    }
    return std::nullopt;
  }
  bool is_between() const noexcept { return have_ == 0; }
  bool is_broken() const noexcept { return is_broken_; }

 private:
  header head_{};
  std::size_t have_ = 0;
  checksum sum_{};
  bool is_broken_ = false;
};

// ---- both programs ----------------------------------------------------------------------------------------------------------

/// As many descriptors as this process may have at all.
inline void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

}  // namespace soak
