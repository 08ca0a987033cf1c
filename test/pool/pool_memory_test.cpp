// A pool for whose queues there is no memory: nothing that is posted is lost.
#include <gtest/gtest.h>

#include <algorithm>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>
#include <weft/pool.hpp>

namespace { thread_local bool none_is_left = false; }  // namespace

// Inlined, std::free() of what new gave is a mistake to g++.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const it = none_is_left ? nullptr : std::malloc(bytes);
  if (it == nullptr) throw std::bad_alloc{};
  return it;
}
[[gnu::noinline]] void operator delete(void* it) noexcept { std::free(it); }
[[gnu::noinline]] void operator delete(void* it, std::size_t) noexcept { std::free(it); }

namespace {

using weft::pool;

// Notes its number when it runs.
struct noted : weft::job {
  noted(std::vector<int>& into, int number) : into_{&into}, number_{number} {
    run = [](weft::job& self) noexcept {
      auto& mine = static_cast<noted&>(self);
      mine.into_->push_back(mine.number_);
    };
  }
  std::vector<int>* into_;
  int number_;
};

// On the pool's one worker: `body`, without memory; then all that it has posted, and the end.
template <class Body>
void post_without_memory(pool& on, Body body) {
  struct first : weft::job {
    explicit first(Body& of) : body{&of} {
      run = [](weft::job& self) noexcept {
        none_is_left = true;
        (*static_cast<first&>(self).body)();
        none_is_left = false;
      };
    }
    Body* body;
  } posts{body};
  on.executor().post(posts);
  on.shutdown();
}

TEST(pool_memory, a_ranked_job_comes_in_turn_without_it) {
  std::vector<int> ran;
  ran.reserve(3);
  noted in_line{ran, 1}, urgent{ran, 2}, last{ran, 3};
  pool p{{.threads = 1, .priorities = 3}};
  post_without_memory(p, [&] {
    p.executor(2).post(last);  // each would be put in its place, but there is none
    p.executor(0).post(urgent);
    p.executor().post_behind(in_line);
  });
  EXPECT_EQ(ran, (std::vector{3, 2, 1}));  // as they came: who goes behind comes behind these, too
}

TEST(pool_memory, a_ranked_job_has_its_rank_with_it) {
  std::vector<int> ran;
  ran.reserve(3);
  noted in_line{ran, 1}, urgent{ran, 2}, last{ran, 3};
  pool p{{.threads = 1, .priorities = 3}};
  post_without_memory(p, [&] {
    none_is_left = false;
    p.executor(2).post(last);
    p.executor(0).post(urgent);
    p.executor().post_behind(in_line);
  });
  EXPECT_EQ(ran, (std::vector{2, 1, 3}));
}

TEST(pool_memory, a_line_that_can_not_grow_spills) {
  constexpr int count = 2000;
  std::vector<int> ran;
  ran.reserve(count);
  std::vector<noted> all;
  for (int i = 0; i != count; ++i) all.emplace_back(ran, i);
  pool p{{.threads = 1}};
  post_without_memory(p, [&] {
    for (auto& one : all) p.executor().post_behind(one);
  });
  std::ranges::sort(ran);
  ASSERT_EQ(ran.size(), std::size_t{count});
  for (int i = 0; i != count; ++i) EXPECT_EQ(ran[static_cast<std::size_t>(i)], i);
}

}  // namespace
