// Stackful code: fibers, which wait at any depth of calls; coroutines by hand; the stacks that both run on;
// running work by number.
//
//     co_await w::with_scope([](w::scope& s) -> w::task<> {
//       w::fork<int> sum = s.go([] {  // a plain function, on a stack of its own
//         int all = 0;
//         for (auto& source : sources) all += w::await(source.next());
//         return all;
//       });
//       use(co_await std::move(sum));
//     });
#pragma once

#include <weft/detail/coroutine.hpp>
#include <weft/detail/fiber.hpp>
#include <weft/detail/registry.hpp>
#include <weft/detail/stack_pool.hpp>
