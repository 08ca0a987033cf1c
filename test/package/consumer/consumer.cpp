// Uses what is compiled into the library as well as what is inline, so that each mixture has a chance to go wrong.
#include <weft/task.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <weft/version.hpp>

namespace w = weft;

// A frame that does not come from weft's own frame memory comes from here. UNCOUNTED is for sanitizers: the operators of
// clang's thread sanitizer can't be replaced, and with the address sanitizer each frame is allocated.
int allocations = 0;
#ifndef UNCOUNTED
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc{};
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto aligned = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(aligned, (size + aligned - 1) / aligned * aligned)) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif

w::task<int> number(int n) { co_return n; }

w::task<int> sum(int n) {
  int total = 0;
  for (int i = 1; i <= n; ++i) total += co_await number(i);
  co_return total;
}

w::task<> fails() {
  throw std::runtime_error{"as planned"};
  co_return;
}

w::task<std::string> catches() {
  try {
    co_await fails();
  } catch (const std::exception& e) {
    co_return e.what();
  }
  co_return "nothing was thrown";
}

int main() {
  if (w::sync_wait(sum(100)) != 5050) return 1;
  if (w::sync_wait(catches()) != "as planned") return 2;

  const int before = allocations;
  if (w::sync_wait(sum(100)) != 5050 || allocations != before) return 3;  // once more
  std::printf("consumer of weft %d: ok\n", WEFT_VERSION);
}
