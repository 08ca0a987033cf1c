#include <weft/test.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "base/spin.hpp"
#include "base/thread_id.hpp"
#include "sched/pumping.hpp"
#include "test/world.hpp"

namespace weft::test {

void require(bool holds, std::string_view otherwise) {
  if (!holds) throw failure{std::string{otherwise}};
}

namespace {
std::atomic<bool (*)()> failure_probe{nullptr};  // relaxed: it points to code, and so carries no data
}

void set_failure_probe(bool (*failed)()) noexcept { failure_probe.store(failed, std::memory_order_relaxed); }

bool detail::probe_failed() noexcept {
  bool (*const failed)() = failure_probe.load(std::memory_order_relaxed);
  return failed != nullptr && failed();
}

// ---- virtual_clock ------------------------------------------------------------------------------------------------------

virtual_clock::~virtual_clock() { weft::detail::pumping::end(pumped_by_); }

clock::time_point virtual_clock::now() const noexcept {
  const std::lock_guard guard{lock_};
  return now_;
}

void virtual_clock::arm(timer& one, time_point when) noexcept {
  const std::lock_guard guard{lock_};
  WEFT_EXPECTS(!one.armed, "a timer was armed that is armed already: cancel it first");
  if (firing_ == &one) firing_ = nullptr;
  one.when = when;
  one.armed = true;
  timer* before = nullptr;
  timer* after = first_;
  while (after != nullptr && after->when <= when) after = (before = after)->next;
  one.prev = before;
  one.next = after;
  (before != nullptr ? before->next : first_) = &one;
  if (after != nullptr) after->prev = &one;
  ++armed_;
  ++total_;
}

bool virtual_clock::cancel(timer& one) noexcept {
  std::unique_lock guard{lock_};
  weft::detail::spin_wait wait;
  while (!one.armed) {
    if (firing_ != &one || firer_ == weft::detail::this_thread_id()) return false;
    guard.unlock();
    wait.once();
    guard.lock();
  }
  one.armed = false;
  (one.prev != nullptr ? one.prev->next : first_) = one.next;
  if (one.next != nullptr) one.next->prev = one.prev;
  --armed_;
  return true;
}

bool virtual_clock::advance_to_next(time_point until) {
  const weft::detail::pumping here{pumped_by_};
  std::unique_lock guard{lock_};
  if (first_ == nullptr || first_->when > until) return false;
  timer& one = *first_;
  first_ = one.next;
  if (first_ != nullptr) first_->prev = nullptr;
  --armed_;
  one.armed = false;
  if (one.when > now_) now_ = one.when;
  firing_ = &one;
  firer_ = weft::detail::this_thread_id();
  guard.unlock();
  one.fire(one);  // the timer may be gone after this line
  if (here.is_gone()) {
    guard.release();
    return true;
  }
  guard.lock();
  firing_ = nullptr;
  return true;
}

void virtual_clock::advance(weft::detail::time_span by) {
  const weft::detail::pumping here{pumped_by_};
  const time_point until = weft::detail::later(now(), by);
  while (!here.is_gone() && advance_to_next(until)) {
  }
  if (here.is_gone()) return;
  const std::lock_guard guard{lock_};
  now_ = until;
}

std::optional<clock::time_point> virtual_clock::next() const noexcept {
  const std::lock_guard guard{lock_};
  if (first_ == nullptr) return {};
  return first_->when;
}

std::size_t virtual_clock::armed() const noexcept {
  const std::lock_guard guard{lock_};
  return armed_;
}
std::size_t virtual_clock::armed_so_far() const noexcept {
  const std::lock_guard guard{lock_};
  return total_;
}

// ---- seeded_executor ------------------------------------------------------------------------------------------------------

seeded_executor::~seeded_executor() {
  WEFT_EXPECTS(empty(), "a seeded_executor was destroyed with jobs inside: run_all() it first, their tasks still wait");
  weft::detail::pumping::end(pumped_by_);
}

void seeded_executor::post(job& work) noexcept {
  const std::lock_guard guard{lock_};
  work.next = nullptr;
  (last_ != nullptr ? last_->next : first_) = &work;
  last_ = &work;
  ++size_;
}

// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 (splitmix64).
std::uint64_t seeded_executor::random() noexcept {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

bool seeded_executor::run_one() noexcept {
  if (empty()) weft::detail::wait_watch::settle();
  job* one;
  {
    const std::lock_guard guard{lock_};
    if (size_ == 0) return false;
    job* before = nullptr;
    one = first_;
    if (state_ != 0 && size_ > 1)
      for (std::size_t skip = random() % size_; skip != 0; --skip) one = (before = one)->next;
    (before != nullptr ? before->next : first_) = one->next;
    if (last_ == one) last_ = before;
    --size_;
  }
  one->run(*one);  // the job and the executor may be gone after this line
  return true;
}

std::size_t seeded_executor::run_all() noexcept {
  const weft::detail::pumping here{pumped_by_};
  std::size_t count = 0;
  while (!here.is_gone() && run_one()) ++count;
  return count;
}

bool seeded_executor::empty() const noexcept {
  const std::lock_guard guard{lock_};
  return size_ == 0;
}

bool seeded_executor::holds(const job& work) const noexcept {
  const std::lock_guard guard{lock_};
  const job* one = first_;
  while (one != nullptr && one != &work) one = one->next;
  return one != nullptr;
}

// ---- seeds --------------------------------------------------------------------------------------------------------------

namespace {

std::optional<std::uint64_t> number_in_environment(const char* name) noexcept {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

}  // namespace

std::uint64_t default_seed() noexcept { return number_in_environment("WEFT_SEED").value_or(0); }

std::size_t default_seeds(std::size_t otherwise) noexcept {
  if (const auto count = number_in_environment("WEFT_SEEDS")) return *count;
  return number_in_environment("WEFT_SEED") ? 1 : otherwise;
}

detail::names_seed::names_seed(std::uint64_t seed) noexcept : seed_{seed}, exceptions_{std::uncaught_exceptions()} {}

detail::names_seed::~names_seed() {
  if (std::uncaught_exceptions() > exceptions_ || failed())
    std::fprintf(stderr, "weft: seed %llu fails; WEFT_SEED=%llu replays it\n", static_cast<unsigned long long>(seed_),
                 static_cast<unsigned long long>(seed_));
}

bool detail::names_seed::failed() const noexcept { return probe_failed(); }

// ---- runs ---------------------------------------------------------------------------------------------------------------

void detail::run_once(subject& what, const run_options& options) {
  auto here = std::make_unique<world>(world_options{
      .seed = options.seed, .io = options.io, .patience = options.patience, .stop_when_idle = options.stop_when_idle});
  auto stop = [now = here.get()] { now->request_stop(); };
  const stop_callback<decltype(stop)&> from_outside{options.stop, stop};
  if (!here->run(what)) {
    const std::string report = "the test hangs: nothing can run and no timer is armed\n" + here->what_waits();
    world::abandon(std::move(here), what);
    throw failure{report};
  }
  // The frame has ended. The scenario stays alive: the caller takes the outcome out of it.
  expect_nothing_left(here, what, [](const std::string& bad) { return failure{bad}; });
}

}  // namespace weft::test
