// A contiguous buffer of bytes that were read and are not consumed yet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <weft/detail/base/config.hpp>

namespace weft::detail {

/// Bytes are appended at the end and consumed from the front. Has no memory before the first reserve().
class byte_buffer {
 public:
  explicit byte_buffer(std::size_t capacity) noexcept : capacity_{capacity} {}
  byte_buffer(byte_buffer&& other) noexcept
      : bytes_{std::move(other.bytes_)},
        capacity_{other.capacity_},
        begin_{std::exchange(other.begin_, 0)},
        end_{std::exchange(other.end_, 0)} {}
  byte_buffer& operator=(byte_buffer&& other) noexcept {
    bytes_ = std::move(other.bytes_);
    capacity_ = other.capacity_;
    begin_ = std::exchange(other.begin_, 0);
    end_ = std::exchange(other.end_, 0);
    return *this;
  }

  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t size() const noexcept { return end_ - begin_; }
  std::span<const std::byte> held() const noexcept { return {bytes_.get() + begin_, size()}; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(bytes_.get()) + begin_, size()}; }

  /// The free space at the end. Only after reserve(), which allocates it.
  std::span<std::byte> room() const noexcept { return {bytes_.get() + end_, capacity_ - end_}; }
  void filled(std::size_t size) noexcept {
    WEFT_EXPECTS(size <= capacity_ - end_, "a reader has said that it gave more bytes than it was given room for");
    end_ += size;
  }
  void put(std::span<const std::byte> data) noexcept {
    if (data.empty()) return;
    std::memcpy(bytes_.get() + end_, data.data(), data.size());
    end_ += data.size();
  }
  void consume(std::size_t size) noexcept {
    begin_ += size;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  /// Drops all but the last `size`.
  void keep_last(std::size_t size) noexcept {
    if (this->size() > size) consume(this->size() - size);
  }

  /// Makes room for `size` bytes, including those held. May move the bytes held. Throws std::bad_alloc and then changes nothing.
  void reserve(std::size_t size) {
    if (bytes_ != nullptr && size <= capacity_ - begin_) return;
    if (bytes_ != nullptr && size <= capacity_) {
      std::memmove(bytes_.get(), bytes_.get() + begin_, this->size());
    } else {
      const std::size_t larger = bytes_ == nullptr ? std::max(capacity_, size) : std::max(capacity_ * 2, size);
      auto bytes = std::make_unique_for_overwrite<std::byte[]>(larger);
      if (this->size() != 0) std::memcpy(bytes.get(), bytes_.get() + begin_, this->size());
      bytes_ = std::move(bytes);
      capacity_ = larger;
    }
    end_ -= std::exchange(begin_, 0);
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_;
  std::size_t begin_ = 0, end_ = 0;
};

/// Checks what a write_some() returned: after 0 bytes, a loop that writes the rest would never end.
inline void expect_some(std::size_t taken, [[maybe_unused]] std::size_t of) noexcept {
  WEFT_EXPECTS(taken != 0 && taken <= of, "a writer has taken no byte, or more than it was given");
}

/// Asserts that one task at a time uses something: `is_taken` is true while this object lives.
class one_at_a_time {
 public:
  one_at_a_time(bool& is_taken, const char* if_taken) noexcept : is_taken_{&is_taken} {
    WEFT_EXPECTS(!std::exchange(is_taken, true), if_taken);
  }
  one_at_a_time(const one_at_a_time&) = delete;
  ~one_at_a_time() { *is_taken_ = false; }

 private:
  bool* is_taken_;
};

}  // namespace weft::detail
