/* Answer the compiler's calls before accesses to memory: find the array, ask memory_checks.h, and
 * note what is wrong. A part of engine.cpp. */
#ifndef HLO_ACCESSES_H
#define HLO_ACCESSES_H

namespace {

void check_shared(uintptr_t address, uint32_t bytes, bool is_write, bool is_atomic,
                  hlo_finding *made) {
    const int64_t at = (int64_t)(address - (uintptr_t)__start_hlo_shared);
    bool is_inside = !shared_count;
    for (int64_t n = 0; n < shared_count && !is_inside; ++n) {
        is_inside = shared_places[2 * n] <= at && at + (int64_t)bytes <= shared_places[2 * n + 1];
    }
    made->shared = at;
    if (!is_inside) {
        made->kind = HLO_OUTSIDE;
        return;
    }
    hlo_access other = 0;
    hlo_now here = now;
    here.launch = now.block; /* each block has shared memory of its own */
    for (uint32_t n = 0; n < bytes; ++n) {
        hlo_cell *cell = &shared_cells[at + n];
        if ((!is_write || is_atomic) && hlo_interval(cell->write) < now.block && !made->kind) {
            made->kind = HLO_UNINITIALISED;
        }
        const int kind = hlo_cell_access(cell, &here, is_write, is_atomic, &other);
        if (is_copy) cell->write |= HLO_IS_COPY;
        if (kind && !made->kind) {
            made->kind = kind;
            made->other_thread = hlo_thread(other);
        }
    }
}

void check_array(hlo_checked_array *array, uintptr_t address, uint32_t bytes, bool is_write,
                 bool is_atomic, hlo_finding *made) {
    if (!array->is_written) {
        if (is_write) made->kind = HLO_INPUT_WRITTEN;
        return;
    }
    const uintptr_t first = (address - array->start) / array->size;
    const uintptr_t last = (address + bytes - 1 - array->start) / array->size;
    hlo_access other = 0;
    for (uintptr_t n = first; n <= last; ++n) {
        const int kind = hlo_cell_access(&array->cells[n], &now, is_write, is_atomic, &other);
        if (!kind || made->kind) continue;
        made->kind = kind;
        made->other_thread = hlo_thread(other);
        made->is_other_block = hlo_interval(other) < now.block || (other & HLO_OTHER_BLOCKS);
    }
}

/* Returns the array that an access is within, or NULL. */
hlo_checked_array *array_at(uintptr_t address, uint32_t bytes, uintptr_t place) {
    uint8_t *last = &last_array[place >> 2 & 255u];
    if (*last < array_count) {
        hlo_checked_array *array = &arrays[*last];
        if (array->start <= address && address + bytes <= array->end) return array;
    }
    for (int n = 0; n < array_count; ++n) {
        if (arrays[n].start <= address && address + bytes <= arrays[n].end) {
            /* Of an array beyond the 256th this names another one: a miss, as bounds are
             * compared. */
            *last = (uint8_t)n;
            return &arrays[n];
        }
    }
    return NULL;
}

/* The nearest array, so that a message can say how far beyond it the access is. */
void place_outside(uintptr_t address, hlo_finding *made) {
    uintptr_t least = UINTPTR_MAX;
    for (int n = 0; n < array_count; ++n) {
        const hlo_checked_array *one = &arrays[n];
        const uintptr_t off = address < one->start ? one->start - address : address - one->start;
        if (off >= least) continue;
        least = off;
        made->array = n;
        made->index = (int64_t)(address - one->start) / (int64_t)one->size;
    }
}

bool is_on_stack_of_another(uintptr_t address) {
    for (uint32_t n = 0; n < blockDim.x; ++n) {
        if (threads[n].at != NEW && address - (uintptr_t)threads[n].stack < HLO_STACK) return true;
    }
    return false;
}

void check(const void *memory, uint32_t bytes, bool is_write, bool is_atomic, void *code) {
    const uintptr_t address = (uintptr_t)memory, place = (uintptr_t)code;
    if (!is_running || address - (uintptr_t)current->stack < HLO_STACK || !bytes) return;
    hlo_finding made;
    made.kind = 0;
    made.array = -1;
    made.shared = -1;
    made.index = 0;
    made.other_thread = -1;
    made.is_other_block = 0;
    hlo_checked_array *array = array_at(address, bytes, place);
    if (array) {
        made.array = (int32_t)(array - arrays);
        made.index = (int64_t)((address - array->start) / array->size);
        check_array(array, address, bytes, is_write, is_atomic, &made);
    } else if (address - (uintptr_t)__start_hlo_shared <
               (uintptr_t)(__stop_hlo_shared - __start_hlo_shared)) {
        check_shared(address, bytes, is_write, is_atomic, &made);
    } else if (address - (uintptr_t)__ehdr_start < (uintptr_t)(_end - __ehdr_start)) {
        return; /* constants, and what is the emulation's own */
    } else {
        made.kind = is_on_stack_of_another(address) ? HLO_NO_STACK_OF_ITS_OWN : HLO_OUTSIDE;
        place_outside(address, &made);
    }
    if (!made.kind) return;
    const int kind = made.kind;
    hlo_finding whole = found(kind);
    whole.array = made.array;
    whole.index = made.index;
    whole.shared = made.shared;
    whole.other_thread = made.other_thread;
    whole.is_other_block = made.is_other_block;
    whole.is_write = is_write;
    whole.bytes = (int32_t)bytes;
    whole.place = place - (uintptr_t)__ehdr_start;
    note(whole);
    /* What lies outside cannot be accessed; of other findings a few are enough. */
    if (kind == HLO_OUTSIDE || kind == HLO_INPUT_WRITTEN || finding_count > HLO_ENOUGH) {
        /* resume() gives up, on the stack of the scheduler, which the longjmp unwinds. */
        current->at = DONE;
        is_running = false;
        give_way();
    }
}

void arrays_ready(const hlo_emulated_memory *memory, int count) {
    if (count > array_capacity) {
        arrays = (hlo_checked_array *)realloc(arrays, (size_t)count * sizeof *arrays);
        if (!arrays) abort();
        memset(arrays + array_capacity, 0, (size_t)(count - array_capacity) * sizeof *arrays);
        array_capacity = count;
    }
    array_count = count;
    for (int n = 0; n < count; ++n) {
        hlo_checked_array *one = &arrays[n];
        one->start = (uintptr_t)memory[n].data;
        one->end = one->start + (uintptr_t)memory[n].elements * memory[n].size;
        one->size = memory[n].size;
        one->is_written = memory[n].is_written;
        if (one->is_written) hlo_cells_ready(one, memory[n].elements);
    }
    const size_t shared = (size_t)(__stop_hlo_shared - __start_hlo_shared);
    if (shared && !shared_cells) {
        shared_cells = (hlo_cell *)calloc(shared, sizeof *shared_cells);
        if (!shared_cells) abort();
    }
}

}  // namespace

extern "C" {

void hlo_emulated_atomic(const void *place, uint32_t bytes) {
    check(place, bytes, true, true, __builtin_return_address(0));
}

void hlo_emulated_range(const void *place, int64_t bytes, int is_write) {
    check(place, (uint32_t)bytes, is_write != 0, false, __builtin_return_address(0));
}

/* ---- what the compiler calls before each access ---- */

#define HLO_ANSWERS(bytes)                                                          \
    void __tsan_read##bytes(void *p) {                                              \
        check(p, bytes, false, false, __builtin_return_address(0));                 \
    }                                                                               \
    void __tsan_write##bytes(void *p) {                                             \
        check(p, bytes, true, false, __builtin_return_address(0));                  \
    }                                                                               \
    void __tsan_unaligned_read##bytes(void *p) {                                    \
        check(p, bytes, false, false, __builtin_return_address(0));                 \
    }                                                                               \
    void __tsan_unaligned_write##bytes(void *p) {                                   \
        check(p, bytes, true, false, __builtin_return_address(0));                  \
    }                                                                               \
    void __tsan_volatile_read##bytes(void *p) {                                     \
        check(p, bytes, false, false, __builtin_return_address(0));                 \
    }                                                                               \
    void __tsan_volatile_write##bytes(void *p) {                                    \
        check(p, bytes, true, false, __builtin_return_address(0));                  \
    }
HLO_ANSWERS(1)
HLO_ANSWERS(2)
HLO_ANSWERS(4)
HLO_ANSWERS(8)
HLO_ANSWERS(16)

void __tsan_read_range(void *p, unsigned long bytes) {
    check(p, (uint32_t)bytes, false, false, __builtin_return_address(0));
}
void __tsan_write_range(void *p, unsigned long bytes) {
    check(p, (uint32_t)bytes, true, false, __builtin_return_address(0));
}
void __tsan_init(void) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}
}

#endif
