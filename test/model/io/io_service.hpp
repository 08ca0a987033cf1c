// In the place of src/io/io_service.hpp: what a descriptor calls of its service, which is the model's.
#pragma once

#include <weft/detail/io/descriptor.hpp>

namespace weft::detail {

class io_service {
 public:
  static bool is_inherited() noexcept { return false; }
  virtual void stop_watching(int number) noexcept = 0;
  virtual void cancel_polls(descriptor& one) noexcept = 0;
  virtual void arm(descriptor& one, direction which) noexcept = 0;
  virtual void give_back(descriptor& one) noexcept = 0;

 protected:
  ~io_service() = default;
};

}  // namespace weft::detail
