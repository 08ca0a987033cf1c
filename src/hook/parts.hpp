// What is left of the parts of a vectored call, behind so many bytes.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <new>

namespace weft::detail {

/// Only of parts that the system has read before.
inline std::size_t size_of(const iovec* parts, std::size_t count) noexcept {
  std::size_t size = 0;
  for (std::size_t i = 0; i != count; ++i) size += parts[i].iov_len;
  return size;
}

class parts_left {
 public:
  parts_left(const iovec* parts, std::size_t count) noexcept : parts_{parts}, count_{count} {}

  /// Empty where there is no memory for a copy, or nothing is left.
  struct view {
    iovec* parts;
    std::size_t count;
  };
  view behind(std::size_t done) noexcept {
    if (done == 0) return {const_cast<iovec*>(parts_), count_};  // NOLINT: the system reads it alone
    if (!copy_) copy_.reset(new (std::nothrow) iovec[count_]);
    if (!copy_) return {nullptr, 0};
    std::size_t left = 0;
    for (std::size_t i = 0; i != count_; ++i) {
      const std::size_t skipped = done < parts_[i].iov_len ? done : parts_[i].iov_len;
      done -= skipped;
      if (skipped != parts_[i].iov_len)
        copy_[left++] = {static_cast<char*>(parts_[i].iov_base) + skipped, parts_[i].iov_len - skipped};
    }
    return {copy_.get(), left};
  }

 private:
  const iovec* parts_;
  std::size_t count_;
  std::unique_ptr<iovec[]> copy_;
};

}  // namespace weft::detail
