// No model: as in world.hpp.
// Runs a test step by step, watches all waits of the process meanwhile, and reports what it has found.
#include "test/world.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <string>
#include <vector>
#include <weft/detail/core/async_stack.hpp>
#include <weft/observe.hpp>

namespace weft::test::detail {

const char* name_of(place one) noexcept {
  switch (one) {
    case place::before: return "before";
    case place::inside: return "inside";
    case place::woken: return "woken";
    case place::step: return "step";
  }
  return "";
}

const char* name_of(by one) noexcept {
  switch (one) {
    case by::same_thread: return "same";
    case by::other_thread: return "other";
    case by::late_thread: return "late";
  }
  return "";
}

// ---- the watch ------------------------------------------------------------------------------------------------------------

namespace {

// The world that watches. Threads that park or wake may be about to use it when it ends, so they are counted, and its end
// waits.
//   edge world  the construction of the world  ->  a thread that enters;  what such a thread did  ->  the world's end
std::atomic<world*> watching{nullptr};
std::atomic<unsigned> inside{0};

class entered {
 public:
  entered() noexcept {
    inside.fetch_add(1, std::memory_order_seq_cst);   // before the look: each thread that sees a world is counted
    here = watching.load(std::memory_order_seq_cst);  // <- world
  }
  entered(const entered&) = delete;
  ~entered() { inside.fetch_sub(1, std::memory_order_release); }  // -> world

  world* here;
};

constexpr weft::detail::wait_watch the_watch{.parking =
                                                 [](weft::detail::sleeper& one) noexcept {
                                                   if (const entered in; in.here != nullptr) in.here->parking(one);
                                                 },
                                             .parked =
                                                 [](weft::detail::sleeper& one, bool waits) noexcept {
                                                   if (const entered in; in.here != nullptr)
                                                     in.here->parked(one, waits);
                                                 },
                                             .waking =
                                                 [](weft::detail::sleeper& one, weft::detail::wake_up) noexcept {
                                                   if (const entered in; in.here != nullptr) in.here->waking(one);
                                                   return false;
                                                 },
                                             .stopping =
                                                 [](weft::detail::sleeper&) noexcept {
                                                   if (const entered in; in.here != nullptr) in.here->stopping();
                                                 },
                                             .ran_dry = []() noexcept { return false; }};

constinit const weft::detail::wait_watch* watch_before = nullptr;  // such as that of chaos; restored at the end

}  // namespace

// ---- tested_root ------------------------------------------------------------------------------------------------------------

tested_root::tested_root(world& in, end_function done) noexcept
    : top_root{weft::detail::root_kind::task, &in.environment(), done} {}

void tested_root::end() noexcept {
  weft::detail::leave_root();
  over_.store(true, std::memory_order_release);  // -> over
}

// ---- world ----------------------------------------------------------------------------------------------------------------

world::world(const world_options& options)
    : options_{options},
      loop_{options.seed},
      sockets_{options.io},
      env_{.executor = options.resumes_inline ? nullptr : static_cast<executor*>(this),
           .stop = source_.token(),
           .memory = frames_->resource(),
           .clock = &clock_,
           .memory_is_shared = true,
           .frames = &frames_->source()},
      table_{std::make_unique<slot[]>(slots)} {
  WEFT_EXPECTS(weft::detail::current_root() == nullptr,
               "a test's run was begun inside a task: it blocks its thread, so call it from a plain function");
  world* nobody = nullptr;
  WEFT_EXPECTS(watching.compare_exchange_strong(nobody, this, std::memory_order_seq_cst),  // -> world
               "two runs of the test kit at once: it watches all waits of the process, so there is one at a time");
  watch_before = weft::detail::wait_watch::now();
  weft::detail::wait_watch::begin(&the_watch);
}

world::~world() {
  if (watching.load(std::memory_order_relaxed) != this) return;  // it was abandoned
  weft::detail::wait_watch::begin(watch_before);
  watching.store(nullptr, std::memory_order_seq_cst);
  while (inside.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();  // <- world
}

bool world::run(subject& what) {
  struct disarm {
    ~disarm() { faults_of_thread().armed = false; }
  } const at_end;
  if (options_.count_allocations) faults_of_thread() = {.armed = true, .count = 0, .fail_at = options_.fail_allocation};
  {
    const weft::detail::ambient_memory ours{&frames_->source()};
    root_ = &what.make(*this);
  }
  stop_it_.emplace(source_.token(), stop_root{root_});
  begin_step();
  root_->run_here();
  end_step();
  const bool ended = drive();
  if (options_.other != nullptr)
    while (options_.other->busy()) std::this_thread::yield();
  if (ended) stop_it_.reset();
  for (std::size_t i = 0; i != places; ++i) findings_.seen[i] = seen_[i].load(std::memory_order_relaxed);
  // Each wake-up posts a root once. A further post is of a root that yields, which has not waited.
  const std::size_t wakes = wakes_.load(std::memory_order_relaxed), posts = posts_.load(std::memory_order_relaxed);
  findings_.awaits = findings_.seen[0] + (posts > wakes ? posts - wakes : 0);
  return ended;
}

// Runs until everything has ended. False: it hangs.
bool world::drive() noexcept {
  for (;;) {
    if (tell_others_) {
      tell_others_ = false;
      request_stop();
    }
    if (!loop_.empty()) {
      begin_step();
      loop_.run_one();
      end_step();
    } else if (options_.other != nullptr && options_.other->busy()) {
      std::this_thread::yield();
    } else if (report_of_sockets() || wait_for_calls()) {
      continue;  // before time advances
    } else if (const auto due = clock_.next()) {
      begin_step();
      // Time does not advance if begin_step() has made jobs by a stop. It advances to this timer only: a stop that is under way
      // may have cancelled it, and the tasks that this stop wakes come before all later timers.
      if (loop_.empty()) clock_.advance_to_next(*due);
      end_step();
    } else if (root_->over()) {
      return true;
    } else if (options_.stop_when_idle && !source_.stop_requested()) {
      request_stop();
    } else if (!wait_for_others()) {
      return false;
    }
  }
}

// Whether there was something to report.
bool world::report_of_sockets() noexcept {
  if (!sockets_.look()) return false;
  begin_step();
  sockets_.report();
  end_step();
  return true;
}

bool world::something_to_do() const noexcept { return !loop_.empty() || clock_.armed() != 0 || root_->over(); }

// Waits for what others do, of which there is no notification: so this polls, often at first. False: `patience` is over.
template <class F>
bool world::poll_until(F over) const noexcept {
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned round = 0;; ++round) {
    if (over()) return true;
    if (std::chrono::steady_clock::now() - begin > options_.patience) return false;
    if (round < 100)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds{round < 1'000 ? 50 : 1'000});
  }
}

// Other threads may still post, arm a timer or end the run.
bool world::wait_for_others() noexcept {
  return poll_until([this] { return something_to_do() || report_of_sockets(); });
}

// Calls on files that a ring makes end by themselves.
bool world::wait_for_calls() noexcept {
  return sockets_.has_calls() && poll_until([this] { return !loop_.empty() || report_of_sockets(); });
}

void world::post(job& work) noexcept {
  posts_.fetch_add(1, std::memory_order_relaxed);
  if (loop_.holds(work)) {
    posted_twice_.store(&work, std::memory_order_relaxed);
    return;  // the list could not hold it twice
  }
  loop_.post(work);
}

void world::begin_step() noexcept {
  if (options_.plan.index == 0) {
    const kit_allocates mine;
    findings_.waiting.push_back(waiting().size());
  }
  reach(place::step, nullptr);
}

void world::end_step() noexcept {
  if (options_.plan.who == by::late_thread) options_.other->let_go();
}

void world::reach(place where, weft::detail::sleeper* who) noexcept {
  const auto which = static_cast<std::size_t>(where);
  const std::size_t count = seen_[which].fetch_add(1, std::memory_order_relaxed) + 1;
  if (options_.plan.index == count && options_.plan.where == where) stop_as_planned(who);
}

void world::stop_as_planned(weft::detail::sleeper* who) noexcept {
  const kit_allocates mine;
  const stop_plan& plan = options_.plan;
  if (plan.where == place::step && plan.which != 0) {
    const auto all = waiting();
    if (plan.which > all.size()) return;
    who = all[plan.which - 1];
    findings_.stopped_in = stack_of(*who);
  } else if (who != nullptr && weft::detail::current_root() != nullptr) {
    findings_.stopped_in = async_stack();
  }
  findings_.stopped = true;
  if (plan.alone) return stop_alone(*who);
  if (plan.who != by::same_thread)
    return options_.other->stop([](void* here) noexcept { static_cast<world*>(here)->request_stop(); }, this,
                                plan.who == by::late_thread ? plan.which : 0);
  if (plan.where != place::before) return request_stop();
  // The thread that parks may hold the lock of a primitive in which others wait, too. A root that does not wait only notes
  // the stop.
  if (const weft::detail::held_wait waits{*root_}; waits) {
    findings_.stopped = false;
    return;
  }
  root_->request_stop();
  tell_others_ = true;
}

// A sleeper that is about to park, or was woken, only notes the stop.
void world::stop_alone(weft::detail::sleeper& one) noexcept {
  if (options_.plan.who == by::same_thread) {
    one.request_stop();
    return;
  }
  options_.other->stop([](void* target) noexcept { static_cast<weft::detail::sleeper*>(target)->request_stop(); }, &one,
                       options_.plan.who == by::late_thread ? 1 : 0);
}

void world::stopping() noexcept {
  if (options_.other != nullptr) options_.other->claimed();
}

// ---- who waits ------------------------------------------------------------------------------------------------------------

world::slot& world::slot_of(const weft::detail::sleeper& one) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(&one);
  std::size_t at = (address >> 4) * 0x9e3779b97f4a7c15U >> 54;
  for (std::size_t tries = 0; tries != slots; ++tries, at = (at + 1) % slots) {
    std::uintptr_t found = table_[at].who.load(std::memory_order_relaxed);  // as declared
    if (found == 0 && table_[at].who.compare_exchange_strong(found, address | unknown, std::memory_order_relaxed))
      return table_[at];
    if ((found & ~flags) == address) return table_[at];
  }
  full_.store(true, std::memory_order_relaxed);
  return table_[0];
}

// Those that wait, the oldest first.
std::vector<weft::detail::sleeper*> world::waiting() const {
  std::vector<std::pair<std::size_t, weft::detail::sleeper*>> found;
  for (std::size_t i = 0; i != slots; ++i) {
    const std::uintptr_t who = table_[i].who.load(std::memory_order_relaxed);
    if (who != 0 && (who & flags) == 0)
      found.emplace_back(table_[i].since.load(std::memory_order_relaxed),
                         reinterpret_cast<weft::detail::sleeper*>(who));
  }
  std::ranges::sort(found);
  std::vector<weft::detail::sleeper*> all;
  for (const auto& one : found) all.push_back(one.second);
  return all;
}

void world::parking(weft::detail::sleeper& one) noexcept {
  slot& mine = slot_of(one);
  mine.since.store(seen_[0].load(std::memory_order_relaxed), std::memory_order_relaxed);
  // Its innermost frame is used by this thread alone; frames further out may belong to roots that run.
  const auto* root = weft::detail::root::of(one);
  mine.in.store(root != nullptr ? weft::detail::stack_walk{*root}.next() : nullptr, std::memory_order_relaxed);
  mine.frame.store(root != nullptr ? root->innermost().address() : nullptr, std::memory_order_relaxed);
  mine.who.store(reinterpret_cast<std::uintptr_t>(&one), std::memory_order_relaxed);
  reach(place::before, &one);
}

void world::parked(weft::detail::sleeper& one, bool waits) noexcept {
  if (!waits)
    slot_of(one).who.store(reinterpret_cast<std::uintptr_t>(&one) | unknown, std::memory_order_relaxed);
  else
    reach(place::inside, &one);
}

// A sleeper that was never seen to park began to wait before this world was made, and does not count.
void world::waking(weft::detail::sleeper& one) noexcept {
  wakes_.fetch_add(1, std::memory_order_relaxed);
  const std::uintptr_t now = reinterpret_cast<std::uintptr_t>(&one) | woken;
  slot& its = slot_of(one);
  const weft::detail::sleeper* nobody = nullptr;
  if (its.who.exchange(now, std::memory_order_relaxed) == now &&
      woken_twice_.compare_exchange_strong(nobody, &one, std::memory_order_relaxed)) {
    twice_in_.store(its.in.load(std::memory_order_relaxed), std::memory_order_relaxed);
    const void* maker = nullptr;
    const bool known = frames_->find_maker(its.frame.load(std::memory_order_relaxed), maker);
    twice_made_.store(maker, std::memory_order_relaxed);
    knows_maker_.store(known, std::memory_order_relaxed);
  }
  reach(place::woken, &one);
}

std::vector<async_frame> world::stack_of(weft::detail::sleeper& one) {
  auto* root = weft::detail::root::of(one);
  return root != nullptr ? async_stack(weft::detail::id_of(*root)) : std::vector<async_frame>{};
}

std::string world::what_waits() const {
  std::string text;
  for (weft::detail::sleeper* one : waiting()) {
    text += one == root_ ? "  the test's own task waits:\n" : "  a task waits:\n";
    const std::string stack = to_string(stack_of(*one));
    text += stack.empty() ? "    (it is no task of weft's, or between two states)\n" : stack;
  }
  if (text.empty()) text = "  nothing that weft knows of waits: a coroutine has suspended and is held by nobody\n";
  if (full_.load(std::memory_order_relaxed)) text += "  and others, for which the kit's table has no room\n";
  return text;
}

std::string world::complaints() const {
  std::string text;
  if (posted_twice_.load(std::memory_order_relaxed) != nullptr)
    text += "something was woken twice: it was posted to its executor while it was still queued there\n";
  if (woken_twice_.load(std::memory_order_relaxed) != nullptr && text.empty())
    text += "something was woken twice for one wait\n";
  if (const void* code = twice_in_.load(std::memory_order_relaxed))
    text += "  what was woken twice had waited in:\n" + to_string(std::vector{async_frame{code}});
  if (knows_maker_.load(std::memory_order_relaxed)) {
    const void* const code = twice_made_.load(std::memory_order_relaxed);
    text += code != nullptr ? "  whose frame was made in:\n" + to_string(std::vector{async_frame{code}})
                            : "  whose frame was made outside of all tasks\n";
  }
  return text;
}

std::string world::leaks() const {
  poll_until([this] { return frames_->live() == 0; });  // an ending thread may have some
  const std::size_t left = frames_->live();
  if (left == 0) return {};
  return (left == 1 ? std::string{"a frame was"} : std::to_string(left) + " frames were") + " left behind:\n" +
         frames_->describe();
}

void world::abandon(std::unique_ptr<world> one, subject& what) noexcept {
  static constinit std::mutex lock;
  static std::vector<world*>* kept = new std::vector<world*>;  // so that a leak checker finds them
  weft::detail::wait_watch::begin(watch_before);
  watching.store(nullptr, std::memory_order_seq_cst);
  one->sockets_.end();
  what.abandon();
  const std::lock_guard guard{lock};
  kept->push_back(one.release());
}

}  // namespace weft::test::detail
