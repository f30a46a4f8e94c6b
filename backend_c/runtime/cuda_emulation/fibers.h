/* Fibers: functions with stacks of their own that give way to each other where they say so.
 *
 * A switch saves the registers that a call keeps, which takes some nanoseconds; swapcontext, which
 * other processors get, asks the kernel for the signal mask each time, which takes a microsecond.
 */
#ifndef HLO_FIBERS_H
#define HLO_FIBERS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Kernels keep arrays of some kilobytes on the stack, dozens at most. Pages that are not used take
 * no memory; the lowest one is forbidden. */
enum { HLO_STACK = 512 * 1024, HLO_STACK_GUARD = 4096 };

#if defined(__x86_64__) || defined(__aarch64__)
struct hlo_context {
    void *stack_pointer; /* the registers to return to are there */
};

extern "C" void hlo_fiber_switch(void **from, void *to);

static void hlo_context_switch(hlo_context *from, hlo_context *to) {
    hlo_fiber_switch(&from->stack_pointer, to->stack_pointer);
}
#endif

#if defined(__x86_64__)
asm(R"(
    .text
    .globl hlo_fiber_switch
    .hidden hlo_fiber_switch
    .type hlo_fiber_switch, @function
hlo_fiber_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size hlo_fiber_switch, .-hlo_fiber_switch
)");

static void hlo_context_make(hlo_context *made, char *top, void (*start)(void)) {
    void **words = (void **)((uintptr_t)top & ~(uintptr_t)15);
    *--words = NULL; /* as if called: the stack is 8 beside a multiple of 16 */
    *--words = (void *)start;
    for (int n = 0; n < 6; ++n) *--words = NULL;
    made->stack_pointer = words;
}
#elif defined(__aarch64__)
asm(R"(
    .text
    .globl hlo_fiber_switch
    .hidden hlo_fiber_switch
    .type hlo_fiber_switch, %function
hlo_fiber_switch:
    sub sp, sp, #160
    stp x19, x20, [sp]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size hlo_fiber_switch, .-hlo_fiber_switch
)");

static void hlo_context_make(hlo_context *made, char *top, void (*start)(void)) {
    void **words = (void **)((uintptr_t)top & ~(uintptr_t)15) - 20;
    for (int n = 0; n < 20; ++n) words[n] = NULL;
    words[11] = (void *)start; /* x30, where ret goes */
    made->stack_pointer = words;
}
#else
#include <ucontext.h>

struct hlo_context {
    ucontext_t context;
};

static void hlo_context_make(hlo_context *made, char *top, void (*start)(void)) {
    getcontext(&made->context);
    /* A page below the end for the guard, one as resume() moves the top by up to 4,032 bytes. */
    made->context.uc_stack.ss_sp = top - (HLO_STACK - 2 * HLO_STACK_GUARD);
    made->context.uc_stack.ss_size = HLO_STACK - 2 * HLO_STACK_GUARD;
    made->context.uc_link = NULL;
    makecontext(&made->context, start, 0);
}

static void hlo_context_switch(hlo_context *from, hlo_context *to) {
    swapcontext(&from->context, &to->context);
}
#endif

/* Returns the lowest address of a new stack; ends the process if there is no memory for it. */
static char *hlo_stack_new(void) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *stack = (char *)mmap(NULL, HLO_STACK, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (stack == (char *)MAP_FAILED) abort();
    mprotect(stack, HLO_STACK_GUARD, PROT_NONE);
    return stack;
}

#endif
