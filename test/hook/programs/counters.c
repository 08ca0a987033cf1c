#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "programs.h"

void program_counters(FILE* out) {
  const int event = eventfd(0, EFD_SEMAPHORE), timer = timerfd_create(CLOCK_MONOTONIC, 0);
  uint64_t count = 3;
  NEED(write(event, &count, sizeof count));
  for (int i = 0; i != 3; ++i) {
    NEED(read(event, &count, sizeof count));
    fprintf(out, "event %lu\n", (unsigned long)count);
  }
  const pid_t child = fork_with(event, event);
  if (child == 0) {
    usleep(500);
    count = 1;
    NEED(write(event, &count, sizeof count));
    _exit(0);
  }
  NEED(read(event, &count, sizeof count));
  fprintf(out, "event %lu, child %d\n", (unsigned long)count, status_of(child));
  const struct itimerspec soon = {.it_value = {0, 1000000}};
  NEED(timerfd_settime(timer, 0, &soon, NULL));
  NEED(read(timer, &count, sizeof count));
  fprintf(out, "timer %lu\n", (unsigned long)count);
  const ssize_t size = read(timer, &count, 4);
  fprintf(out, "%zd %s\n", size, strerror(errno));
  close(event);
  close(timer);
}
