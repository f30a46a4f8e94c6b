/* The perceptron of small_mlp_infer as one writes it by hand, with tanh of the C library: what
 * emitted C is held against. Inputs by rows, as there; the bits are not those of emitted C. */
#include "module.h"

#include <math.h>

static void layer(const float *x, int inputs, const float *weights, const float *bias, int outputs,
                  float *y) {
    for (int j = 0; j < outputs; ++j) {
        float sum = 0.0f;
        for (int i = 0; i < inputs; ++i) {
            sum += x[i] * weights[i * outputs + j];
        }
        y[j] = sum + bias[j];
    }
}

static void activate(float *y, int count) {
    for (int j = 0; j < count; ++j) {
        y[j] = tanhf(y[j]);
    }
}

int module_run(const float *in_x_1, const float *in_w1_1, const float *in_b1_1,
               const float *in_w2_1, const float *in_b2_1, const float *in_w3_1,
               const float *in_b3_1, float *out, void *workspace) {
    float *const first = (float *)workspace, *const second = first + 64;
    layer(in_x_1, 32, in_w1_1, in_b1_1, 64, first);
    activate(first, 64);
    layer(first, 64, in_w2_1, in_b2_1, 64, second);
    activate(second, 64);
    layer(second, 64, in_w3_1, in_b3_1, 4, out);
    return 0;
}
