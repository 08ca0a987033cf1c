// Game entities: each goes on by a step a frame, and those that are left end with the world.
#include <gtest/gtest.h>
#include <weft/test.hpp>
#include <weft/weft.hpp>

#define main program
#include "../../examples/recipes/game_entities.cpp"
#undef main

namespace {

TEST(game_entities, live_for_as_many_frames_as_their_rounds_take) {
  world all{10};  // of one to five rounds, two of each
  for (int rounds = 0; rounds != 5; ++rounds) {
    EXPECT_EQ(all.alive, 10 - 2 * rounds);
    for (int frame = 0; frame != 8; ++frame) all.next_frame();  // three there, two of rest, three back
  }
  EXPECT_EQ(all.alive, 0);
  EXPECT_EQ(all.frame, 40);
}

TEST(game_entities, do_nothing_while_no_frame_is_drawn) {
  w::test::run([]() -> w::task<> {
    world all{10};
    co_await w::sleep_for(std::chrono::hours{1});
    EXPECT_EQ(all.alive, 10);
    EXPECT_EQ(all.frame, 0);
  });
}

struct is_stopped {
  w::task<> run() {
    world all{3};
    for (int frame = 0; frame != 6; ++frame) {
      all.next_frame();
      co_await w::yield();  // to the window's other events
    }
  }
};
TEST(game_entities, end_with_their_world_wherever_it_is_stopped) {
  w::test::cancellation_sweep<is_stopped>("game entities");
}

}  // namespace
