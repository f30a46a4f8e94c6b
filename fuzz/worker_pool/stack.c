// What a process was at when a signal ended it: the stack, one line for each frame, on stderr.

#include <execinfo.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES = 64, SECONDS = 5 };

static const char marker[] = "\nstack of the process:\n";  // as stack.py looks for it

static void show(int number) {
  void *frames[FRAMES];
  alarm(SECONDS);  // the stack of a damaged heap may never come
  if (write(2, marker, sizeof marker - 1) < 0) {
    raise(number);  // nobody reads the stack either
  }
  backtrace_symbols_fd(frames, backtrace(frames, FRAMES), 2);
  raise(number);  // as before: the handler is gone
}

void show_stacks(void) {
  static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  void *frame;
  backtrace(&frame, 1);  // loads what it needs, which a handler may not
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = show;
  action.sa_flags = (int)SA_RESETHAND;
  for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; ++n) {
    sigaction(numbers[n], &action, 0);
  }
}
