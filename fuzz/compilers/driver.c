/* program INPUT OUTPUT: runs hlo_entry once for each number of threads, on memory of exactly the
 * bytes that it may use, and writes all results of every run.
 *
 * INPUT is 64-bit integers, then bytes: how many arguments, results, places and runs there are; the
 * bytes of the constants and of the workspace, and the seed; the bytes of each argument and of each
 * result; for each result whether all of it must be set; offset and bytes of each place in the
 * workspace; the threads of each run; all arguments; the constants.
 *
 * What a run finds in its workspace and in its results differs from run to run.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#if __has_feature(memory_sanitizer)
#define SANITIZE_MEMORY 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif
#if defined(SANITIZE_MEMORY)
#include <sanitizer/msan_interface.h>
#endif

#define ALIGNMENT 64

void hlo_entry(const void *const *arguments, void *const *results, const unsigned char *constants,
               unsigned char *workspace, uint64_t seed);
void omp_set_num_threads(int threads);

typedef struct {
    unsigned char *data;
    size_t bytes;
} memory;

static void fail(const char *why) {
    fprintf(stderr, "driver: %s\n", why);
    exit(2);
}

static int64_t *integers(FILE *file, int64_t count) {
    int64_t *values = malloc(sizeof(int64_t) * (size_t)(count + 1));
    if (!values || fread(values, sizeof(int64_t), (size_t)count, file) != (size_t)count) {
        fail("the input ends early");
    }
    return values;
}

static memory allocated(int64_t bytes, int aligned) {
    memory made;
    made.bytes = (size_t)bytes;
    made.data = NULL;
    if (!aligned) {
        made.data = malloc(made.bytes);
    } else if (posix_memalign((void **)&made.data, ALIGNMENT, made.bytes + !made.bytes)) {
        made.data = NULL;
    }
    if (!made.data && made.bytes) fail("no memory");
    return made;
}

static memory read(FILE *file, int64_t bytes, int aligned) {
    const memory made = allocated(bytes, aligned);
    if (fread(made.data, 1, made.bytes, file) != made.bytes) fail("the input ends early");
    return made;
}

static void **pointers(const memory *all, int64_t count) {
    void **made = malloc(sizeof(void *) * (size_t)(count + 1));
    if (!made) fail("no memory");
    for (int64_t n = 0; n < count; ++n) made[n] = all[n].data;
    return made;
}

static uint64_t digest(const memory *one) {
    uint64_t hash = 14695981039346656037u;
    for (size_t n = 0; n < one->bytes; ++n) hash = (hash ^ one->data[n]) * 1099511628211u;
    return hash;
}

/* What an earlier run left is nothing that a run may read. */
static void soil(memory one, int run) {
    static const int bytes[] = {0xa5, 0x00, 0xff, 0x3c};
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(one.data, one.bytes);
#endif
    memset(one.data, bytes[run % 4], one.bytes);
#if defined(SANITIZE_MEMORY)
    __msan_allocated_memory(one.data, one.bytes);
#endif
}

static void check_set(memory one, int64_t all) {
#if defined(SANITIZE_MEMORY)
    if (all) __msan_check_mem_is_initialized(one.data, one.bytes);
    __msan_unpoison(one.data, one.bytes);
#endif
    (void)one;
    (void)all;
}

/* Between its places nothing of the workspace may be read or written. */
static void fence(memory workspace, const int64_t *places, int64_t count) {
#if defined(__SANITIZE_ADDRESS__)
    ASAN_POISON_MEMORY_REGION(workspace.data, workspace.bytes);
    for (int64_t n = 0; n < count; ++n) {
        ASAN_UNPOISON_MEMORY_REGION(workspace.data + places[2 * n], (size_t)places[2 * n + 1]);
    }
#endif
    (void)workspace;
    (void)places;
    (void)count;
}

int main(int count, char **names) {
    FILE *input = count == 3 ? fopen(names[1], "rb") : NULL;
    FILE *output = count == 3 ? fopen(names[2], "wb") : NULL;
    if (!input || !output) fail("INPUT or OUTPUT cannot be opened");
    const int64_t *head = integers(input, 7);
    const int64_t taken = head[0], given = head[1], kept = head[2], runs = head[3];
    const int64_t *argument_bytes = integers(input, taken), *result_bytes = integers(input, given);
    const int64_t *all = integers(input, given), *places = integers(input, 2 * kept);
    const int64_t *threads = integers(input, runs);
    memory *arguments = malloc(sizeof(memory) * (size_t)(taken + 1));
    memory *results = malloc(sizeof(memory) * (size_t)(given + 1));
    uint64_t *before = malloc(sizeof(uint64_t) * (size_t)(taken + 1));
    if (!arguments || !results || !before) fail("no memory");
    for (int64_t n = 0; n < taken; ++n) arguments[n] = read(input, argument_bytes[n], 0);
    for (int64_t n = 0; n < given; ++n) results[n] = allocated(result_bytes[n], 0);
    for (int64_t n = 0; n < taken; ++n) before[n] = digest(arguments + n);
    const memory constants = read(input, head[4], 1), workspace = allocated(head[5], 1);
    const uint64_t constant = digest(&constants);
    void **from = pointers(arguments, taken), **to = pointers(results, given);
    for (int run = 0; run < runs; ++run) {
        for (int64_t n = 0; n < given; ++n) soil(results[n], run);
        soil(workspace, run);
        fence(workspace, places, kept);
#if defined(_OPENMP)
        omp_set_num_threads((int)threads[run]);
#else
        (void)threads;
#endif
        hlo_entry((const void *const *)from, to, constants.data, workspace.data, (uint64_t)head[6]);
        for (int64_t n = 0; n < given; ++n) {
            check_set(results[n], all[n]);
            fwrite(results[n].data, 1, results[n].bytes, output);
        }
    }
    for (int64_t n = 0; n < taken; ++n) {
        if (before[n] != digest(arguments + n)) fail("an argument was changed");
    }
    if (constant != digest(&constants)) fail("a constant was changed");
    return fclose(output) ? 2 : 0;
}
