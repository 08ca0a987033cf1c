// The limit: what a stop of such a tree can't do without, on one thread. Each leaf has a frame of its own, which is in the line
// of what it waits for and in the list of its node. A stop goes down the tree, tells one after the other, takes each leaf
// out of its line and destroys its frame; the last one of a node has that node's frame destroyed. Nothing is locked, nobody
// can end but by the stop, and there is no cause, env, async stack, handle or executor.
#include "workload.hpp"

#include "../harness/handwritten.hpp"

#include <coroutine>
#include <exception>

namespace {

class child;

/// What is in a line.
struct link {
  link* next = this;
  link* before = this;

  void join(link& line) noexcept {
    next = line.next;
    before = &line;
    next->before = this;
    line.next = this;
  }
  void leave() noexcept {
    before->next = next;
    next->before = before;
  }
};

/// The children of one node, in its frame.
class children {
 public:
  void start(child one) noexcept;
  void stop() noexcept;
  void one_has_ended() noexcept {
    if (--left_ == 0 && ended_ != nullptr) ended_(*this);
  }

 protected:
  void (*ended_)(children&) = nullptr;

 private:
  friend child;
  void* first_ = nullptr;
  std::size_t left_ = 0;
};

class child {
 public:
  struct promise_type {
    children* parent = nullptr;
    promise_type* next = nullptr;
    void* waits_in = nullptr;
    void (*stop)(promise_type&) = nullptr;
    std::exception_ptr failure;

    child get_return_object() noexcept { return child{*this}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() noexcept { failure = std::current_exception(); }

    /// It has been told to stop, and its wait is over.
    void end() noexcept {
      children& all = *parent;
      std::coroutine_handle<promise_type>::from_promise(*this).destroy();
      all.one_has_ended();
    }

    static void* operator new(std::size_t bytes) { return handwritten::frame_cache::take(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept {
      handwritten::frame_cache::give(memory, bytes);
    }
  };

  promise_type& promise;

 private:
  explicit child(promise_type& of) noexcept : promise{of} {}
};

void children::start(child one) noexcept {
  one.promise.parent = this;
  one.promise.next = static_cast<child::promise_type*>(first_);
  first_ = &one.promise;
  ++left_;
}

// This is gone after the last one.
void children::stop() noexcept {
  for (auto* one = static_cast<child::promise_type*>(first_); one != nullptr;) {
    auto* const next = one->next;
    __builtin_prefetch(next, 1);
    one->stop(*one);
    one = next;
  }
}

struct wait_in_line : link {
  link& line;

  explicit wait_in_line(link& in) noexcept : line{in} {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<child::promise_type> self) noexcept {
    join(line);
    self.promise().waits_in = this;
    self.promise().stop = [](child::promise_type& mine) {
      static_cast<wait_in_line*>(mine.waits_in)->leave();
      mine.end();
    };
  }
  void await_resume() const noexcept {}
};

struct wait_for_children : children {
  child::promise_type* mine = nullptr;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<child::promise_type> self) noexcept {
    mine = &self.promise();
    mine->waits_in = this;
    mine->stop = [](child::promise_type& told) { static_cast<wait_for_children*>(told.waits_in)->stop(); };
    ended_ = [](children& all) { static_cast<wait_for_children&>(all).mine->end(); };
  }
  void await_resume() const noexcept {}
};

struct leaf_ends {
  std::size_t& count;
  ~leaf_ends() { ++count; }
};

child leaf(link& never, std::size_t& ended) {
  const leaf_ends here{ended};
  co_await wait_in_line{never};
}

child node(int depth, link& never, std::size_t& ended) {
  wait_for_children all;
  for (std::size_t i = 0; i != bench::children_of_a_node; ++i)
    all.start(depth == 1 ? leaf(never, ended) : node(depth - 1, never, ended));
  co_await all;
}

class tree {
 public:
  explicit tree(std::size_t leaves) { root_.start(node(bench::depth_of(leaves), never_, ended_)); }
  tree(const tree&) = delete;

  std::size_t stop() {
    root_.stop();
    return ended_;
  }

 private:
  link never_;
  children root_;
  std::size_t ended_ = 0;
};

}  // namespace

void bench::run(bench::state& state) { measure_cancel<tree>(state); }
