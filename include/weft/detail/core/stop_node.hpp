// A callback in the list of a stop_source.
#pragma once

#include <weft/detail/base/atomic.hpp>

namespace weft {

class stop_source;

namespace detail {

struct stop_run;

/// A callback in a source's list.
class stop_node {
 public:
  stop_node(const stop_node&) = delete;

 protected:
  explicit stop_node(void (*run)(stop_node&) noexcept) noexcept : run_{run} {}
  ~stop_node() = default;

 private:
  friend class weft::stop_source;
  // All but the last one under the source's lock.
  void (*run_)(stop_node&) noexcept;
  plain<stop_node*> next_ = nullptr;
  plain<plain<stop_node*>*> link_ = nullptr;  // what points to this node; null: not in the list
  atomic<bool> ended_{false};  // edge ran: what the callback did -> the return of remove() on another thread
};

}  // namespace detail

}  // namespace weft
