/* Call a compiled module from C: the sum of x + y * z over 1024 x 1024 numbers.
 *
 *     hlo emit examples/sum_of_products.hlo --target openmp -o DIR
 *     cmake -S DIR -B DIR/build -DCMAKE_C_FLAGS=-march=native && cmake --build DIR/build
 *     cc -IDIR examples/desktop/sum_of_products.c DIR/build/libmodule.a -fopenmp -lm -o sum
 *     ./sum DIR/constants.bin
 *
 * The workspace and the constants are the caller's, so the module allocates nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "module.h"

#define ELEMENTS (1024 * 1024)
#define ALIGNMENT 64

/* Allocates at least one byte at a multiple of 64, or ends the program. */
static void *allocated(size_t bytes) {
    void *memory = aligned_alloc(ALIGNMENT, (bytes / ALIGNMENT + 1) * ALIGNMENT);
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

/* Reads the constants of the module; one without any has an empty file. */
static unsigned char *constants_of(const char *path) {
    unsigned char *const constants = allocated(MODULE_CONSTANT_BYTES);
    FILE *const file = fopen(path, "rb");
    if (file == NULL || fread(constants, 1, MODULE_CONSTANT_BYTES, file) != MODULE_CONSTANT_BYTES) {
        fprintf(stderr, "%s is not the constants.bin of this module\n", path);
        exit(1);
    }
    fclose(file);
    return constants;
}

int main(int count, char **words) {
    if (count != 2) {
        fprintf(stderr, "usage: %s constants.bin\n", words[0]);
        return 2;
    }
    unsigned char *const constants = constants_of(words[1]);
    unsigned char *const workspace = allocated(MODULE_WORKSPACE_BYTES);
    float *const x = allocated(ELEMENTS * sizeof(float));
    float *const y = allocated(ELEMENTS * sizeof(float));
    float *const z = allocated(ELEMENTS * sizeof(float));
    for (int i = 0; i < ELEMENTS; ++i) {
        x[i] = 1.0f;
        y[i] = (float)(i % 7);
        z[i] = 0.5f;
    }
    float sum;
    const void *const arguments[] = {x, y, z};
    void *const results[] = {&sum};
    hlo_entry(arguments, results, constants, workspace, 0);
    printf("%.9g\n", (double)sum);
    free(z);
    free(y);
    free(x);
    free(workspace);
    free(constants);
    return 0;
}
