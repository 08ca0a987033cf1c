// What a channel can carry: types that must not be dropped, that are aligned for more than operator new does, that only
// move, that have operators of their own.
#include <weft/channel.hpp>

#include <any>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <weft/error.hpp>
#include <weft/select.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::channel;
using weft::channel_closed;
using weft::sync_wait;
using weft::task;

// Through each kind of channel, without a coroutine: what its frame would do about the type is not the channel's.
template <class T, class Make>
void is_carried(Make make) {
  channel<T> c{2};
  EXPECT_TRUE(c.try_send(make()));
  sync_wait(c.send(make()));
  EXPECT_FALSE(c.try_send(make()));
  EXPECT_TRUE(sync_wait(c.receive()).has_value());
  EXPECT_EQ(sync_wait(weft::select(on_send(c, make()), weft::otherwise)).index, 0u);
  EXPECT_TRUE(c.try_receive().has_value());
  channel<T> all{weft::unbounded};
  for (int i = 0; i != 40; ++i) sync_wait(all.send(make()));
  for (int i = 0; i != 20; ++i) EXPECT_TRUE(sync_wait(all.receive()).has_value());
  all.close();
  std::optional<T> back;
  try {
    sync_wait(all.send(make()));
  } catch (channel_closed<T>& closed) {
    back.emplace(std::move(closed.value()));
  }
  EXPECT_TRUE(back.has_value());
}  // with values left in both

TEST(channel_types, what_must_not_be_dropped) {
  is_carried<weft::semaphore::permit>([] { return weft::semaphore::permit{}; });
  is_carried<task<int>>([] { return []() -> task<int> { co_return 1; }(); });
}

TEST(channel_types, what_only_moves_or_takes_anything) {
  is_carried<std::unique_ptr<int>>([] { return std::make_unique<int>(1); });
  is_carried<std::any>([] { return std::any{1}; });
  is_carried<std::optional<std::string>>(
      [] { return std::optional<std::string>{"a string that is on the heap, surely"}; });
}

struct without_operators {
  explicit without_operators(int) {}
  without_operators* operator&() = delete;
  void operator,(int) = delete;
};
TEST(channel_types, what_has_operators_of_its_own) {
  is_carried<without_operators>([] { return without_operators{1}; });
}

template <bool copies>
struct alignas(128) wide {
  explicit wide(int n) noexcept : number{n} { expect_aligned(); }
  wide(const wide& other) noexcept
    requires copies
      : number{other.number} {
    expect_aligned();
  }
  wide(wide&& other) noexcept : number{std::exchange(other.number, 0)} { expect_aligned(); }
  ~wide() { expect_aligned(); }
  void expect_aligned() const { EXPECT_EQ(reinterpret_cast<std::uintptr_t>(this) % 128, 0u); }
  int number;
};
TEST(channel_types, what_is_aligned_for_more_than_an_exception_is) {
  // Without a coroutine: neither compiler aligns frames for more.
  channel<wide<false>> c{1};
  EXPECT_TRUE(c.try_send(wide<false>{3}));
  EXPECT_EQ(c.try_receive()->number, 3);
  try {
    throw channel_closed<wide<false>>{wide<false>{5}};
  } catch (channel_closed<wide<false>>& thrown) {
    EXPECT_EQ(thrown.value().number, 5);
  }
  static_assert(std::is_copy_constructible_v<channel_closed<wide<true>>>);
  static_assert(!std::is_copy_constructible_v<channel_closed<wide<false>>>);

  using closed = channel_closed<wide<true>>;
  closed first{wide<true>{7}};
  for (std::size_t from = 0; from != 128; from += alignof(closed)) {  // wherever it lies
    alignas(128) unsigned char bytes[sizeof(closed) + 128];
    auto* copy = ::new (static_cast<void*>(bytes + from)) closed{first};
    closed moved{std::move(*copy)};
    copy->~closed();
    EXPECT_EQ(moved.value().number, 7);
  }
}

}  // namespace
