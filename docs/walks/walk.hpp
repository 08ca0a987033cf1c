// Where a walk begins and ends: tools/walks looks for these two in the trace of a thread.
#pragma once

[[gnu::noinline]] inline void walk_begins() { asm volatile(""); }
[[gnu::noinline]] inline void walk_ends() { asm volatile(""); }
