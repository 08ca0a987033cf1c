// Whether what threads have seen of an object fits one that does a thing at a time: linearizability, from recorded
// histories.
//
// Each operation is recorded with when it was called and when it returned, and a Model says what a single-threaded object
// would give. A history is good if each operation can be put at one point between its two times, so that the model agrees
// with all of them. That point is searched for: among those that were called before any other returned, one after the other
// is tried; what was tried already, the same set of operations in the same state, is not tried again.
//
// Source: Wing and Gong, with Lowe's memory of states. Porcupine does the same and more; it is a Go program, so it would have
// to be built wherever the tests run and be handed histories in files, for what are eighty lines here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace test {

/// What was done to an object, by several threads, tasks or fibers. At most 64 operations.
template <class Operation>
class history {
 public:
  struct entry {
    Operation what;
    std::uint64_t called;
    std::uint64_t returned;
  };

  explicit history(std::size_t threads) : of_(threads) {}

  /// By the one that is `which`: `act()` does it, and gives the Operation with its result.
  template <class Act>
  void record(std::size_t which, Act&& act) {
    const std::uint64_t called = call();
    returned(which, called, act());
  }
  /// The same in two steps, where what is done between them waits in its own way.
  std::uint64_t call() { return clock_.fetch_add(1); }
  void returned(std::size_t which, std::uint64_t called, Operation what) {
    of_[which].push_back({std::move(what), called, clock_.fetch_add(1)});
  }

  /// When all have ended.
  std::vector<entry> all() const {
    std::vector<entry> them;
    for (const auto& one : of_) them.insert(them.end(), one.begin(), one.end());
    return them;
  }

 private:
  std::atomic<std::uint64_t> clock_{0};
  std::vector<std::vector<entry>> of_;
};

/// Whether a Model can have done all this. A Model is copied and compared by <, and `bool apply(const Operation&)` says
/// whether that operation, with its result, is possible now, and does it.
template <class Model, class Entry>
bool is_linearizable(const Model& start, const std::vector<Entry>& all) {
  std::set<std::pair<std::uint64_t, Model>> tried;
  const std::uint64_t everything = all.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << all.size()) - 1;
  std::vector<std::pair<std::uint64_t, Model>> open{{0, start}};
  while (!open.empty()) {
    const auto [done, model] = std::move(open.back());
    open.pop_back();
    if (done == everything) return true;
    std::uint64_t first_return = ~std::uint64_t{0};
    for (std::size_t i = 0; i != all.size(); ++i)
      if ((done >> i & 1) == 0 && all[i].returned < first_return) first_return = all[i].returned;
    for (std::size_t i = 0; i != all.size(); ++i) {
      if ((done >> i & 1) != 0 || all[i].called > first_return) continue;
      Model next = model;
      if (!next.apply(all[i].what)) continue;
      std::pair<std::uint64_t, Model> step{done | std::uint64_t{1} << i, std::move(next)};
      if (tried.insert(step).second) open.push_back(std::move(step));
    }
  }
  return false;
}

}  // namespace test
