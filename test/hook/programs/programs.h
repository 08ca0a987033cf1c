/* Small programs in C, which know nothing of weft: each writes what it finds to `out`, which does not depend on time. Run as they
   are and with hooks, they find the same. */
#ifndef WEFT_TEST_HOOK_PROGRAMS_H
#define WEFT_TEST_HOOK_PROGRAMS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_EACH_PROGRAM(X)                                                                                          \
  X(echo_pair) X(pipe_chain) X(poll_loop) X(select_loop) X(epoll_loop) X(dup_games) X(close_games) X(time_limits)     \
  X(sleeps) X(fork_wait) X(names) X(tcp_echo) X(udp_pair) X(unix_stream) X(vectored) X(messages) X(big_transfer)      \
  X(non_blocking) X(half_close) X(wait_for_all) X(counters)

#define WEFT_DECLARE(NAME) void program_##NAME(FILE* out);
WEFT_EACH_PROGRAM(WEFT_DECLARE)
#undef WEFT_DECLARE

#ifdef __cplusplus
}
#else

/* Says where a call has failed that never should. */
#define NEED(CALL)                                                                   \
  do {                                                                               \
    if ((CALL) < 0) {                                                                \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #CALL, strerror(errno)); \
      abort();                                                                       \
    }                                                                                \
  } while (0)

/* A child that has no descriptors but these two, and the first three: what belongs to others that run beside would stay open. */
static inline pid_t fork_with(int one, int other) {
  const int low = one < other ? one : other, high = one < other ? other : one;
  const pid_t child = fork();
  NEED(child);
  if (child == 0) {
    if (low > 3) close_range(3, (unsigned)low - 1, 0);
    if (high > low + 1) close_range((unsigned)low + 1, (unsigned)high - 1, 0);
    close_range((unsigned)high + 1, ~0U, 0);
  }
  return child;
}

static inline int status_of(pid_t child) {
  int status;
  NEED(waitpid(child, &status, 0));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline void write_all(int number, const char* text) {
  NEED(write(number, text, strlen(text)));
}

#endif
#endif
