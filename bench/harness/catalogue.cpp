#include "catalogue.hpp"

#include <algorithm>

namespace bench {
namespace {

constexpr double ms = 1e-6, seconds = 1e-9;  // of a nanosecond

/// Coflux's counts.
const std::vector<shape> forks{{100'000, "100 k"},         {500'000, "500 k", false}, {1'000'000, "1 M"},
                               {3'000'000, "3 M", false},  {5'000'000, "5 M", false}, {7'000'000, "7 M", false},
                               {10'000'000, "10 M", false}};

/// A pool of so many threads.
std::vector<shape> threads(bool headline) {
  return {{1, "1 thread", headline},
          {2, "2 threads", headline, false},
          {4, "4 threads", false, false},
          {8, "8 threads", false, false},
          {16, "16 threads", false, false}};
}

/// LioNet's: as many coroutines as it has, see switch_mt/workload.hpp.
std::vector<shape> threads_and_coroutines() {
  auto out = threads(true);
  const std::vector<shape> more{{3001, "3000 on 1 thread", false},
                                {3002, "3000 on 2 threads", false, false},
                                {3004, "3000 on 4 threads", false, false},
                                {3008, "3000 on 8 threads", false, false},
                                {3016, "3000 on 16 threads", false, false}};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

/// LioNet's: as many fibers as it makes, see fiber_create_mt/workload.hpp.
std::vector<shape> threads_and_fibers() {
  auto out = threads(false);
  const std::vector<shape> more{{1001, "1000 on 1 thread", false},
                                {1002, "1000 on 2 threads", false, false},
                                {1004, "1000 on 4 threads", false, false},
                                {1008, "1000 on 8 threads", false, false},
                                {1016, "1000 on 16 threads", false, false}};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

/// Of each tree, see uts/workload.hpp. T3L takes some twenty seconds a call on one thread.
std::vector<shape> threads_and_trees() {
  auto out = threads(false);
  const std::vector<shape> more{{101, "T3, 1 thread", false},
                                {102, "T3, 2 threads", false, false},
                                {104, "T3, 4 threads", false, false},
                                {108, "T3, 8 threads", false, false},
                                {116, "T3, 16 threads", false, false},
                                {201, "T3L, 1 thread", false, true, false},
                                {202, "T3L, 2 threads", false, false, false},
                                {204, "T3L, 4 threads", false, false, false},
                                {208, "T3L, 8 threads", false, false, false},
                                {216, "T3L, 16 threads", false, false, false}};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

/// Three kinds of work, on pools of a few threads and on one of 16 of which some are awake, see adaptive/workload.hpp.
std::vector<shape> sizes_of_a_pool() {
  return {{100, "fib, adaptive", false, false},     {101, "fib, 1 thread", false, false},
          {102, "fib, 2 threads", false, false},    {104, "fib, 4 threads", false, false},
          {108, "fib, 8 threads", false, false},    {200, "yields, adaptive", false, false},
          {201, "yields, 1 thread", false, false},  {202, "yields, 2 threads", false, false},
          {204, "yields, 4 threads", false, false}, {208, "yields, 8 threads", false, false},
          {300, "blocks, adaptive", false, false},  {301, "blocks, 1 thread", false, false},
          {302, "blocks, 2 threads", false, false}, {304, "blocks, 4 threads", false, false},
          {308, "blocks, 8 threads", false, false}};
}

/// Two kinds, see loop/workload.hpp.
std::vector<shape> loops() {
  return {{1, "for_each, 1 thread", false},         {2, "for_each, 2 threads", false, false},
          {4, "for_each, 4 threads", false, false}, {101, "sum, 1 thread", false},
          {102, "sum, 2 threads", false, false},    {104, "sum, 4 threads", false, false}};
}

/// A pool of so many threads, and what comes from outside of it.
std::vector<shape> beside_others() {
  return {{1, "1 thread", false, false}, {2, "2 threads", false, false}, {4, "4 threads", false, false}};
}

/// The same, and ten seconds without a job, see idle/workload.hpp.
std::vector<shape> beside_others_and_idle() {
  auto out = beside_others();
  out.push_back({10'002, "2 threads, then idle for 10 s", false, false, false});
  return out;
}

/// The same as beside_others, and what one of its own tasks has it do.
std::vector<shape> beside_others_and_inside() {
  return {{1, "from outside, 1 thread", false, false},
          {2, "from outside, 2 threads", false, false},
          {101, "from a task, 1 thread", false, false},
          {102, "from a task, 2 threads", false, false}};
}

/// So many connections, see tcp_pingpong/workload.hpp.
std::vector<shape> connections() {
  return {{1, "1 connection", false, true, false},
          {20, "20 connections"},
          {1000, "1000 connections", false, true, false},
          {10'000, "10,000 connections", false},
          {1'000'020, "20 connections, 2 threads", false, false},
          {1'001'000, "1000 connections, 2 threads", false, false},
          {1'010'000, "10,000 connections, 2 threads", false, false}};
}

/// One alone is on one thread.
std::vector<shape> contenders(bool headline) {
  return {{1, "1", headline},       {2, "2", headline, false}, {4, "4", false, false},  {8, "8", false, false},
          {16, "16", false, false}, {32, "32", false, false},  {64, "64", false, false}};
}

}  // namespace

std::span<const workload> catalogue() {
  static const std::vector<workload> all{
      {.name = "chain",
       .about = "1000 nested awaits of distinct functions, every callee visible",
       .unit = "ns a level",
       .weight = 1.5},
      {.name = "chain_opaque",
       .about = "the same, each callee in another translation unit: nothing elides",
       .unit = "ns a level",
       .weight = 1.5},
      {.name = "collect_all",
       .about = "5000 chains of 50 awaits, started together and joined",
       .unit = "ms",
       .scale = ms,
       .weight = 1.5},
      {.name = "call_depth",
       .about = "one recursive task, awaiting itself that deep",
       .unit = "ns a level",
       .weight = 0.4,
       .shapes = {{1, "1 deep"},
                  {10, "10 deep", false},
                  {100, "100 deep", false},
                  {1000, "1000 deep"},
                  {10'000, "10 k deep", false},
                  {100'000, "100 k deep", false},
                  {1'000'000, "1 M deep"}}},
      {.name = "fork_monotonic",
       .about = "an empty fork, made and awaited, with memory from a monotonic resource",
       .unit = "ns a fork",
       .weight = 0.7,
       .shapes = forks},
      {.name = "fork_pool",
       .about = "an empty fork that nobody awaits, with memory from a pool resource",
       .unit = "ns a fork",
       .weight = 0.7,
       .shapes = forks},
      {.name = "fork_default",
       .about = "an empty fork, made and awaited, with the library's own memory",
       .unit = "ns a fork",
       .shapes = {{100'000, "100 k"}, {10'000'000, "10 M", false}}},
      {.name = "pipeline",
       .about = "8 pipelines on a pool, 1000 items through each, a stage awaiting the next",
       .unit = "ns an item",
       .shapes = {{5, "5 stages", false, false}, {20, "20 stages", false, false}}},
      {.name = "cancel",
       .about = "a tree of waiting tasks, ten children a node, is stopped and joined",
       .unit = "ns a leaf",
       .shapes = {{100'000, "100 k", false}}},
      {.name = "when_any",
       .about = "two are started, one has its value at once, the other is stopped and joined",
       .unit = "ns a race",
       .shapes = {{.headline = false}}},
      {.name = "switch",
       .about = "a stackful coroutine is resumed and yields, each of so many in turn",
       .unit = "ns a pair",
       .shapes = {{2, "2 (hot)", true, true, true, "switch_hot"}, {1000, "1000"}, {30'000, "30 k"}}},
      {.name = "switch_prefetch",
       .about = "the same, and whoever resumes them has the one ten ahead fetched, by hand",
       .unit = "ns a pair",
       .shapes = {{1000, "1000", false}, {30'000, "30 k", false}}},
      {.name = "fiber_create",
       .about = "a stackful coroutine is made, runs and ends",
       .unit = "ns each",
       .shapes = {{1, "one after the other"}, {1000, "1000 at once"}}},
      {.name = "switch_30k",
       .about =
           "libcopp's benchmark: so many are made, each is switched to 100 times (1000 in a full run), all are removed",
       .unit = "ns a switch",
       .shapes = {{1000, "1000, 2048 KiB", false}, {10'000, "10 k, 200 KiB", false}, {30'000, "30 k, 64 KiB", false}},
       .longer_in_full = true,
       .parameters = {"switches", "kib"}},
      {.name = "switch_30k_prefetch",
       .about = "the same, and whoever switches to them has the one ten ahead fetched, by hand",
       .unit = "ns a switch",
       .shapes = {{30'000, "30 k, 64 KiB", false}},
       .longer_in_full = true,
       .parameters = {"switches", "kib"}},
      {.name = "fibers_1m",
       .about = "stackful coroutines are made, and are all there at once, each guarded where the library can",
       .unit = "ns each",
       .shapes = {{100'000, "100 k", false, true, false}, {1'000'000, "1 M", false, true, false}}},
      {.name = "fiber_create_mt",
       .about = "3000 fibers, or 1000, are made by one, yield once and end, on a pool",
       .unit = "ns each",
       .shapes = threads_and_fibers()},
      {.name = "fib",
       .about = "fork two and join them, on a pool",
       .unit = "ns a call",
       .weight = 1,
       .shapes = threads(true)},
      {.name = "skynet",
       .about = "a tree of ten children a node and 10 M leaves, on a pool",
       .unit = "ms",
       .scale = ms,
       .weight = 1,
       .shapes = threads(false)},
      {.name = "nqueens",
       .about = "all ways to place 12 queens; each safe place in a row is a child, on a pool",
       .unit = "ms",
       .scale = ms,
       .weight = 1,
       .shapes = threads(false)},
      {.name = "uts",
       .about = "unbalanced tree search: a node's children come out of a hash, on a pool",
       .unit = "ns a node",
       .shapes = threads_and_trees()},
      {.name = "cilksort",
       .about = "a merge sort of 4 M numbers whose halves and merges are forked, on a pool",
       .unit = "ns a number",
       .shapes = threads(false)},
      {.name = "matmul",
       .about = "the product of two matrices of 512 x 512, by halves, on a pool",
       .unit = "ms",
       .scale = ms,
       .shapes = threads(false)},
      {.name = "loop",
       .about = "each of a million numbers is hashed, or their hashes are summed up, on a pool",
       .unit = "ns a number",
       .shapes = loops()},
      {.name = "switch_mt",
       .about = "1000 coroutines, or 3000, yield 1000 times each, on a pool",
       .unit = "ns a switch",
       .weight = 1,
       .shapes = threads_and_coroutines()},
      {.name = "adaptive",
       .about = "calls, yields and tasks that block, on pools of a few threads and of 16 of which some are awake",
       .unit = "ns",
       .shapes = sizes_of_a_pool()},
      {.name = "hop",
       .about = "from one pool to another and back",
       .unit = "ns",
       .shapes = {{.headline = false, .pinned = false}}},
      {.name = "post",
       .about = "two threads that are none of the pool's have it run 20,000 empty jobs each",
       .unit = "ns a job",
       .shapes = beside_others()},
      {.name = "bulk",
       .about = "10,000 empty tasks are spawned on a pool, then joined",
       .unit = "ns a task",
       .shapes = beside_others_and_inside()},
      {.name = "idle",
       .about = "a pool that has had nothing to do for two milliseconds gets a job; until that runs",
       .unit = "us",
       .scale = 1e-3,
       .shapes = beside_others_and_idle()},
      {.name = "fair",
       .about = "a hundred tasks yield for ever on a pool, a short one comes from outside; until that runs",
       .unit = "us",
       .scale = 1e-3,
       .shapes = beside_others()},
      {.name = "goroutine",
       .about =
           "each has an in and an out channel with room for one; a number is sent in and received out, of each in turn "
           "(1000 times in a full run)",
       .unit = "ns a round trip",
       .shapes = {{1000, "1000", false}, {30'000, "30 k"}},
       .longer_in_full = true,
       .parameters = {"switches"}},
      {.name = "channel_spsc",
       .about = "one sends, one receives, a channel with room for 1024",
       .unit = "ns a number",
       .shapes = {{1, "1 thread"}, {2, "2 threads", true, false}}},
      {.name = "channel_pingpong",
       .about = "there and back through two channels without room",
       .unit = "ns a round trip",
       .shapes = {{1, "1 thread"}, {2, "2 threads", false, false}}},
      {.name = "channel_mpmc",
       .about = "four send, four receive, a channel with room for 1024, on two threads",
       .unit = "ns a number",
       .shapes = {{1'000'000, "1 M", true, false}, {10'000'000, "10 M", false, false}}},
      {.name = "broadcast",
       .about = "one sends to four, none of which misses any, with room for 1024",
       .unit = "ns a number sent to all",
       .shapes = {{1, "1 thread"}, {2, "2 threads", false, false}}},
      {.name = "select",
       .about = "waiting for whichever of several channels is ready",
       .unit = "ns",
       .shapes = {{2, "of 2, round trip"}, {4, "of 4, one ready", false}, {0, "none ready", false}}},
      {.name = "mutex",
       .about = "so many take one mutex in turns, on two threads",
       .unit = "ns a lock",
       .shapes = contenders(true)},
      {.name = "mutex_held",
       .about =
           "16 take one mutex in turns on one thread, and each yields once while it has it: all wait for each lock",
       .unit = "ns a lock",
       .shapes = {{16, "16", false}}},
      {.name = "shared_mutex",
       .about = "so many share a mutex, and each takes it alone every hundredth time, on two threads",
       .unit = "ns a lock",
       .shapes = contenders(false)},
      {.name = "timer",
       .about = "a timer that is due in five seconds is armed and cancelled",
       .unit = "ns each",
       .shapes = {{1, "alone", false},
                  {100'000, "beside 100 k", false},
                  {1'000'000, "beside 1 M", false, true, false},
                  {2, "cancelled by another thread", false, false}}},
      {.name = "timeout",
       .about = "there and back through two channels without room, without and with a time limit for each receive",
       .unit = "ns a round trip",
       .shapes = {{0, "no limit", false}, {5, "within 5 s", false}}},
      {.name = "sleepers",
       .about = "tasks are made that all sleep for an hour, and are then stopped",
       .unit = "ns each",
       .shapes = {{1'000'000, "1 M", false, true, false}}},
      {.name = "tcp_pingpong",
       .about = "64 bytes are sent to a server and come back, over so many connections; its processor time",
       .unit = "us a request",
       .scale = 1e-3,
       .weight = 1,
       .shapes = connections()},
      {.name = "tcp_pingpong_open",
       .about = "the same at a fixed rate, half of what epoll by hand can do; its processor time, and how long an "
                "answer takes",
       .unit = "us a request",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{20, "20 connections", false, false},
                  {50, "50 connections", false, false},
                  {1000, "1000 connections", false, false},
                  {10'000, "10,000 connections", false, false}},
       .paced = true,
       .parameters = {"rate"}},
      {.name = "udp",
       .about = "datagrams of 64 bytes are sent to a server, so many at a time, and come back; its processor time",
       .unit = "us a datagram",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{1, "1 at a time", false}, {64, "64 at a time"}}},
      {.name = "udp_open",
       .about =
           "datagrams of 64 bytes at a fixed rate, half of what epoll by hand can do; its processor time, how long an "
           "answer takes, and how many are lost",
       .unit = "us a datagram",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{20, "rate of 20 at a time", false, false}},
       .paced = true,
       .parameters = {"rate"}},
      {.name = "unix_pingpong",
       .about = "64 bytes are sent to a server and come back, over so many Unix sockets; its processor time",
       .unit = "us a request",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{20, "20 connections", false}}},
      {.name = "unix_datagram",
       .about =
           "datagrams of 64 bytes are sent over a pair of Unix sockets, so many at a time, and come back; the server's "
           "processor time",
       .unit = "us a datagram",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{1, "1 at a time", false}, {64, "64 at a time", false}}},
      {.name = "tls_echo",
       .about = "20 clients send a message by TLS 1.3 (AES-128-GCM) and get it back; the server's processor time",
       .unit = "us a message",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{64, "64 bytes"}, {16'384, "16 KiB", false}}},
      {.name = "tls_handshake",
       .about = "a client connects by TLS 1.3, sends a byte, gets it back and goes; the server's processor time",
       .unit = "us a connection",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{1, "full", false}, {2, "resumed", false}}},
      {.name = "tls_memory",
       .about = "2,000 connections by TLS that wait for their next message; what the server has of memory for each",
       .unit = "bytes a connection",
       .shapes = {{.size = 1, .headline = false}}},
      {.name = "http_hello",
       .about = "wrk gets \"Hello, world\" on 20 connections for a second; the server's processor time",
       .unit = "us a request",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{.size = 1, .headline = false}, {2, "2 threads", false, false}},
       .size_is_threads = true},
      {.name = "http_hello_open",
       .about =
           "the same at a fixed rate, half of what epoll by hand can do; the server's processor time, and how long "
           "an answer takes",
       .unit = "us a request",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{20, "20 connections", false, false}},
       .paced = true,
       .parameters = {"rate"}},
      {.name = "connection_memory",
       .about = "10,000 connections that wait for their next request; what the server has of memory for each",
       .unit = "bytes a connection",
       .shapes = {{64, "64 bytes to read into", false}, {4096, "4 KiB to read into", false}}},
      {.name = "resolve",
       .about = "names are looked up with a name server on this machine, so many at once; processor time",
       .unit = "us a lookup",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{1, "1 at a time", false}, {100, "100 at once", false}}},
      {.name = "hook_pg",
       .about = "short queries to a PostgreSQL server, one after the other on each connection; the processor time of "
                "who asks",
       .unit = "us a query",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{64, "64 connections", false}, {1000, "1000 connections", false}}},
      {.name = "spawn",
       .about = "/bin/true is run to its end, so many at once; the processor time of the program that starts it",
       .unit = "us a process",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{1, "1 at a time", false}, {16, "16 at once", false}}},
      {.name = "file_read",
       .about = "4 KiB of a file at random from the page cache, so many reads at once; processor time",
       .unit = "us a read",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{1, "1 at a time", false}, {32, "32 at once"}}},
      {.name = "file_read_direct",
       .about = "4 KiB of a file at random from the disk (O_DIRECT), so many reads at once; processor time",
       .unit = "us a read",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{1, "1 at a time", false}, {32, "32 at once", false}}},
      {.name = "file_read_stream",
       .about = "1 MiB of a file, one behind the other, from the page cache; processor time",
       .unit = "us a read",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{1, "1 at a time", false}}},
      {.name = "file_write",
       .about = "4 KiB of a file at random into the page cache, so many writes at once; processor time",
       .unit = "us a write",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{1, "1 at a time", false}, {32, "32 at once", false}}},
      {.name = "file_write_sync",
       .about = "4 KiB of a file at random, each on the disk (fdatasync), so many at once; processor time",
       .unit = "us a write",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{1, "1 at a time", false}, {32, "32 at once", false}}},
      {.name = "file_write_stream",
       .about = "1 MiB of a file, one behind the other, into the page cache; processor time",
       .unit = "us a write",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{1, "1 at a time", false}}},
      {.name = "accept",
       .about = "64 clients at a time connect and close; the server's processor time",
       .unit = "us a connection",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{1, "1 thread", false}, {2, "2 threads", false, false}}},
      {.name = "resets",
       .about = "1000 connections that wait for a request are reset; the server's processor time",
       .unit = "us a reset",
       .scale = 1e-3,
       .weight = 1,
       .shapes = {{1, "1 thread", false}, {2, "2 threads", false, false}}},
      {.name = "wake",
       .about = "a thread that waits for a connection gets a job from another one; until that runs",
       .unit = "us",
       .scale = 1e-3,
       .shapes = {{.headline = false, .pinned = false}}},
      {.name = "wake_busy",
       .about =
           "a byte comes on a socket while the thread computes that waited for it, and another one idles; until its "
           "task has it",
       .unit = "us",
       .scale = 1e-3,
       .shapes = {{2000, "computing for 2 s", false, false, false}, {50, "computing for 50 ms", false, false}}},
      {.name = "generator",
       .about = "the sum over a plain generator",
       .unit = "ns a value",
       .shapes = {{.headline = false}}},
      {.name = "generator_tree",
       .about = "the sum over a recursive generator that walks a binary tree, 16 deep",
       .unit = "ns a value",
       .shapes = {{.headline = false}}},
      {.name = "callback",
       .about = "awaiting a C function that reports through a callback, at once",
       .unit = "ns an await",
       .shapes = {{.headline = false}}},
      {.name = "frame",
       .about = "bytes allocated for an await, once warm",
       .unit = "bytes an await",
       .kind = metric::allocations,
       .weight = 0,
       .shapes = {{0, "straight line"}, {1, "likely branch"}, {2, "recursive"}, {3, "empty body, unseen"}}},
      {.name = "compile",
       .about = "compiling a file that only includes the headers",
       .unit = "s",
       .scale = seconds,
       .kind = metric::command,
       .weight = 0,
       .shapes = {{.headline = false}}},
  };
  return all;
}

const workload* find_workload(std::string_view name) {
  const auto all = catalogue();
  const auto found = std::ranges::find(all, name, &workload::name);
  return found == all.end() ? nullptr : &*found;
}

std::string row_title(const workload& work, const shape& form) {
  std::string title{work.name};
  if (!form.label.empty()) title += ", " + form.label;
  return title;
}

}  // namespace bench
