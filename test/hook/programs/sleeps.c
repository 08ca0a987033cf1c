#include <time.h>

#include "programs.h"

static long microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void program_sleeps(FILE* out) {
  const struct timespec some = {0, 2000000}, none = {0, 0}, wrong = {-1, 0};
  struct timespec until;
  long begun = microseconds();
  int result = nanosleep(&some, NULL);
  fprintf(out, "nanosleep %d %d\n", result, microseconds() - begun >= 2000);
  begun = microseconds();
  result = usleep(2000);
  fprintf(out, "usleep %d %d\n", result, microseconds() - begun >= 2000);
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += 2000000;
  if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, ++until.tv_sec;
  result = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
  fprintf(out, "until %d %d\n", result, microseconds() >= until.tv_sec * 1000000 + until.tv_nsec / 1000);
  fprintf(out, "none %d %u %d\n", nanosleep(&none, NULL), sleep(0), usleep(0));
  result = nanosleep(&wrong, NULL);
  fprintf(out, "wrong %d %s\n", result, strerror(errno));
}
