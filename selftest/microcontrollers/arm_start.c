/* Starts a Cortex-M without a C library: runs main between two looks at the system timer, tells the
 * ticks by semihosting, and ends the emulation with main's status. */
#include <stdint.h>

enum { WRITE_TEXT = 0x04, EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

extern uint32_t board_stack;
extern int main(void);

static void ask_host(uint32_t operation, const void *argument) {
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void tell(uint32_t number) {
    char text[12];
    int start = sizeof text - 1;
    text[start] = 0;
    do {
        text[--start] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    ask_host(WRITE_TEXT, text + start);
}

static void reset(void) {
    volatile uint32_t *const timer = (volatile uint32_t *)0xE000E010; /* SysTick */
    uint32_t begin, end, exit_with[2];
#ifdef __ARM_FP
    *(volatile uint32_t *)0xE000ED88 |= 0xF00000; /* CPACR: the floating-point unit is on */
    __asm__ volatile("dsb\n\tisb");
#endif
    timer[1] = 0xFFFFFF;
    timer[2] = 0;
    timer[0] = 5; /* counts down at the processor's clock */
    begin = timer[2];
    exit_with[1] = (uint32_t)main();
    end = timer[2];
    /* The counter has 24 bits and counts down: right for fewer than 2^24 ticks. */
    tell((begin - end) & 0xFFFFFF);
    exit_with[0] = APPLICATION_EXIT;
    ask_host(EXIT_EXTENDED, exit_with);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    &board_stack,
    (const void *)reset,
};
