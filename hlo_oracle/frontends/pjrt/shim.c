/* The library that clients of PJRT load: its table of functions leads to Python.

Python fills `hlo_pjrt` (shim.py): `api` is the PJRT_Api that clients see, whose functions are
`entries`, each of which calls the function of its number in `python`. After Python has ended they
do nothing and report success: clients free what they hold then. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define FUNCTIONS 160

typedef void *Function(void *);

struct shim {
    void *api[FUNCTIONS + 8];
    Function *python[FUNCTIONS];
    Function *entries[FUNCTIONS];
    void (*nothing)(void *);
    int inside;         /* how many functions run */
    int is_interrupted; /* set if Ctrl-C came while one did (interrupts.py) */
    void (*end)(void);  /* Python calls it before it ends */
    int is_release[FUNCTIONS]; /* whether the function of a number only frees what a client holds */
};
extern struct shim hlo_pjrt;

/* Of Python's C API, found in the process: no header of it is needed. */
static struct {
    int (*is_initialized)(void);
    int (*is_finalizing)(void);
    int (*ensure)(void);
    void (*release)(int);
    void (*fetch)(void **, void **, void **);
    void (*restore)(void *, void *, void *);
    void (*interrupt)(void);
    int (*run)(const char *);
} python;

static void *found(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static int python_runs(void)
{
    return python.is_initialized && python.is_initialized() && !python.is_finalizing();
}

static int find_python(void)
{
    void *finalizing = found("Py_IsFinalizing"); /* public from 3.13 on */
    python.is_finalizing =
        (int (*)(void))(finalizing ? finalizing : found("_Py_IsFinalizing"));
    python.ensure = (int (*)(void))found("PyGILState_Ensure");
    python.release = (void (*)(int))found("PyGILState_Release");
    python.fetch = (void (*)(void **, void **, void **))found("PyErr_Fetch");
    python.restore = (void (*)(void *, void *, void *))found("PyErr_Restore");
    python.interrupt = (void (*)(void))found("PyErr_SetInterrupt");
    python.run = (int (*)(const char *))found("PyRun_SimpleString");
    if (python.is_finalizing && python.ensure && python.release && python.fetch && python.restore
        && python.interrupt && python.run)
        python.is_initialized = (int (*)(void))found("Py_IsInitialized");
    return python_runs();
}

/* A thread that waits for Python's lock when Python ends is ended in the middle of C++, which ends
   the process: jaxlib's threads release what they hold late. So Python waits for calls of other
   threads before it ends; releases that come later do nothing, but for those of the thread that
   ends Python, which has the lock. That thread may still compute, in functions of atexit that are
   called later, and waits for threads of jaxlib that compile for it: their calls go on. */
#define MOST_SECONDS 60

static atomic_int calls; /* that have the lock of Python, or wait for it */
static atomic_int is_ending;
static pthread_t ending;

static int may_call(int number)
{
    const int is_late = is_ending && hlo_pjrt.is_release[number];
    return python_runs() && (!is_late || pthread_equal(ending, pthread_self()));
}

/* In place of the end of a thread that waits for the lock of Python while Python ends. */
static void sleep_on(void *unused)
{
    (void)unused;
    for (;;)
        pause();
}

static int locked(void)
{
    int state;
    pthread_cleanup_push(sleep_on, NULL);
    state = python.ensure();
    pthread_cleanup_pop(0);
    return state;
}

static void end(void)
{
    ending = pthread_self();
    is_ending = 1;
    for (long wait = 0; calls && wait < MOST_SECONDS * 1000L; ++wait)
        usleep(1000);
}

/* An array that goes while an exception propagates calls its destructor: the exception is set
   aside, or Python would find it in the function that is called. An interrupt that came in
   the meantime is given to Python again, for the program of the user. */
static void *called(int number, void *arguments)
{
    void *kind, *value, *trace, *error;
    /* Counted before the test: end() sets is_ending before it reads calls, so that each call is
       either waited for or refused. */
    ++calls;
    if (!may_call(number)) {
        --calls;
        return NULL;
    }
    int state = locked();
    python.fetch(&kind, &value, &trace);
    ++hlo_pjrt.inside;
    error = hlo_pjrt.python[number](arguments);
    if (!--hlo_pjrt.inside && hlo_pjrt.is_interrupted) {
        hlo_pjrt.is_interrupted = 0;
        python.interrupt();
    }
    python.restore(kind, value, trace);
    python.release(state);
    --calls;
    return error;
}

#define EACH_OF_TEN(DO, n) \
    DO(n##0) DO(n##1) DO(n##2) DO(n##3) DO(n##4) DO(n##5) DO(n##6) DO(n##7) DO(n##8) DO(n##9)
#define EACH(DO) \
    DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) \
    EACH_OF_TEN(DO, 1) EACH_OF_TEN(DO, 2) EACH_OF_TEN(DO, 3) EACH_OF_TEN(DO, 4) \
    EACH_OF_TEN(DO, 5) EACH_OF_TEN(DO, 6) EACH_OF_TEN(DO, 7) EACH_OF_TEN(DO, 8) \
    EACH_OF_TEN(DO, 9) EACH_OF_TEN(DO, 10) EACH_OF_TEN(DO, 11) EACH_OF_TEN(DO, 12) \
    EACH_OF_TEN(DO, 13) EACH_OF_TEN(DO, 14) EACH_OF_TEN(DO, 15)

static void nothing(void *freed)
{
    (void)freed;
}

#define DEFINITION(n) static void *entry_##n(void *arguments) { return called(n, arguments); }
#define REFERENCE(n) entry_##n,

EACH(DEFINITION)
struct shim hlo_pjrt = {.entries = {EACH(REFERENCE)}, .nothing = nothing, .end = end};

/* Called by a client that loaded this library itself, from a process of Python: fills the table. */
static void fill(void)
{
    char text[160];
    snprintf(text, sizeof text,
             "__import__('hlo_oracle.frontends.pjrt.shim', fromlist=['fill']).fill(%llu)",
             (unsigned long long)(size_t)&hlo_pjrt);
    int state = python.ensure();
    python.run(text);
    python.release(state);
}

const void *GetPjrtApi(void)
{
    if (find_python() && !hlo_pjrt.api[0])
        fill();
    if (!python_runs() || !hlo_pjrt.api[0]) {
        fputs("hlo-oracle: GetPjrtApi needs a process of Python with hlo_oracle installed\n", stderr);
        return NULL;
    }
    return hlo_pjrt.api;
}
