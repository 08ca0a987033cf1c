// without_huge_pages PROGRAM ARGUMENT...: runs a program to which the system gives no huge pages, whatever it asks for.
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>

int main(int count, char** arguments) {
  if (count < 2 || ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
    std::puts("SKIPPED: huge pages can't be switched off here");
    return 77;
  }
  ::execv(arguments[1], arguments + 1);
  std::perror(arguments[1]);
  return 1;
}
