// Paths, directories and what happens in them, with a stop at each place of each await, and without memory: no descriptor is left.
#include <weft/directory.hpp>

#include <unistd.h>

#include <string>
#include <weft/file_watch.hpp>

#include "file/temporary_tree.hpp"
#include "net/open_descriptors.hpp"
#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;
namespace fs = weft::fs;

// Calls are made on real threads, so what a sweep sees is another run each time.
constexpr weft::test::sweep_options on_threads{.inline_completion = false};

struct leaves_nothing_open {
  test::temporary_tree in;
  std::size_t before = test::open_descriptors();
  void check() const { require(test::open_descriptors() == before, "a descriptor was left open"); }
};

template <class By>
struct asks : leaves_nothing_open {
  part<By> run() {
    const std::string a = in.at("a"), b = in.at("b");
    in.directory("b");
    co_await fs::create_symlink("b", a);
    const std::string to = co_await fs::read_symlink(a);
    require(to == "b", "a link was read otherwise");
    const fs::file_status of = co_await fs::status(a), link = co_await fs::symlink_status(a);
    require(of.kind == fs::file_kind::directory && link.kind == fs::file_kind::symlink, "it is something else");
    co_await fs::permissions(b, 0700);
    co_await fs::set_times({.modified = fs::file_time{}}, b);
  }
};
TEST(sweep, paths) {
  sweep_both<asks>("fs::status, fs::symlink_status, fs::read_symlink, fs::permissions, fs::set_times", on_threads);
}

template <class By>
struct names_files : leaves_nothing_open {
  part<By> run() {
    const std::string a = in.at("a"), b = in.at("b"), file = in.file("f");
    co_await fs::create_directory(a);
    co_await fs::create_directories(b + "/c");
    co_await fs::rename(a, b + "/d");
    const bool is_there = co_await fs::exists(a);
    require(!is_there, "it is still there");
    co_await fs::create_hard_link(file, a);
    const bool was_there = co_await fs::remove(a);
    require(was_there, "it was not there");
  }
};
TEST(sweep, names_of_files) {
  // clang-format off
  sweep_both<names_files>("fs::exists, fs::rename, fs::remove, fs::create_directory, fs::create_directories, fs::create_hard_link",
                          on_threads);
  // clang-format on
}
template <class By>
struct links : leaves_nothing_open {
  part<By> run() { co_await fs::create_symlink("b", in.at("a")); }
};
TEST(sweep, links) { sweep_both<links>("fs::create_symlink", on_threads); }

template <class By>
struct lists : leaves_nothing_open {
  part<By> run() {
    for (const char* one : {"t/a/1", "t/a/b/2", "t/3"}) in.file(one);
    int found = 0;
    for (auto all = fs::directory({.recursive = true}, in.at("t")); co_await all.next() != nullptr;) ++found;
    require(found == 5, "a name was lost");
    const auto removed = co_await fs::remove_all(in.at("t"));
    require(removed == 6, "a name was lost");
  }
};
TEST(sweep, directory) { sweep_both<lists>("fs::directory, fs::remove_all", on_threads); }

template <class By>
struct makes : leaves_nothing_open {
  part<By> run() {
    auto one = co_await fs::make_temporary_directory({.in = in.path()});
    co_await one.remove();
    auto other = co_await fs::make_temporary_directory({.in = in.path()});
  }
  void check() const {
    leaves_nothing_open::check();
    require(::rmdir(in.path().c_str()) == 0, "a temporary directory was left");
  }
};
TEST(sweep, temporary_directory) {
  sweep_both<makes>("fs::make_temporary_directory, temporary_directory::remove", on_threads);
}

struct leaves_no_watch {
  test::temporary_tree in;
  fs::file_watch first;  // and with it what is made once
  std::size_t before = test::open_descriptors();
  void check() const { require(test::open_descriptors() == before, "a descriptor was left open"); }
};

template <class By>
struct watches : leaves_no_watch {
  part<By> run() {
    fs::file_watch watch;
    const fs::watch_id all = co_await watch.add(in.path(), fs::file_change::created);
    const std::string a = in.file("a"), b = in.file("a-name-that-takes-memory-of-its-own");
    const fs::file_event one = co_await watch.next(), other = co_await watch.next();
    require(one.watch == all && one.name == "a", "an event was lost");
    require(b == in.at(other.name), "an event was lost");
  }
};
TEST(sweep, file_watch) { sweep_both<watches>("file_watch::add, file_watch::next", on_threads); }

template <class By>
struct waits_for_events : leaves_no_watch {
  part<By> waits() {
    const fs::file_event one = co_await first.next();
    require(one.name == "a", "an event was lost");
  }
  part<By> makes() {
    co_await rest(2);
    in.file("a");
  }
  part<By> run() {
    co_await first.add(in.path(), fs::file_change::created);
    co_await together(waits(), makes());
  }
};
TEST(sweep, file_watch_waits) {  // where it stops is swept as of any other operation of a descriptor
  sweep_both<waits_for_events>(
      "file_watch::next",
      {.stop_when_idle = true, .inline_completion = false, .other_thread = false, .each_alone = false});
}

}  // namespace
