/* Starts a 32-bit RISC-V without a C library: runs main between two looks at the counter of
 * instructions, tells the difference by semihosting, and ends the emulation with main's status. */
#include <stdint.h>

enum { WRITE_TEXT = 0x04, EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

extern int main(void);

__asm__(".section .text.start, \"ax\"\n"
        ".global start\n"
        "start:\n"
        "    la sp, board_stack\n"
        "    j started\n"
        ".text\n"
        /* A debugger knows the call by what surrounds it, none of it in two bytes. */
        ".option push\n"
        ".option norvc\n"
        ".balign 16\n"
        "ask_host:\n"
        "    slli zero, zero, 0x1f\n"
        "    ebreak\n"
        "    srai zero, zero, 7\n"
        "    ret\n"
        ".option pop\n");

extern void ask_host(uint32_t operation, const void *argument);

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

static uint32_t instructions(void) {
    uint32_t count;
    __asm__ volatile(".option push\n\t.option arch, +zicsr\n\tcsrr %0, minstret\n\t.option pop"
                     : "=r"(count));
    return count;
}

__attribute__((used)) void started(void) {
    uint32_t exit_with[2];
    const uint32_t begin = instructions();
    exit_with[1] = (uint32_t)main();
    tell(instructions() - begin);
    exit_with[0] = APPLICATION_EXIT;
    ask_host(EXIT_EXTENDED, exit_with);
}
