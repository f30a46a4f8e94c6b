/* Copies to shared memory that a thread does not wait for (cp.async). A part of engine.cpp.
 *
 * Hardware may copy at any time between the start and the end of the wait; here nothing is copied
 * before the wait, and from the start to the wait nobody may read or write the bytes, nor may one
 * who read them in this interval still be about to. After the wait the thread has written them.
 */
#ifndef HLO_ASYNC_COPIES_H
#define HLO_ASYNC_COPIES_H

namespace {

struct pending_copy {
    unsigned char *to;
    unsigned char bytes[16];
    uint32_t size;
};

struct copy_queue {
    pending_copy *copies;
    uint32_t count, capacity;
} queues[HLO_MOST_THREADS];

/* Of the threads of a block that begins: what others left behind is forgotten. */
void forget_copies() {
    for (uint32_t n = 0; n < blockDim.x; ++n) queues[n].count = 0;
}

}  // namespace

extern "C" {

void hlo_emulated_copy_async(void *to, const void *from, uint32_t size, uint32_t bytes) {
    void *code = __builtin_return_address(0);
    check(from, bytes, false, false, code);
    is_copy = true;
    check(to, size, true, false, code);
    is_copy = false;
    copy_queue *queue = &queues[threadIdx.x];
    if (queue->count == queue->capacity) {
        queue->capacity = queue->capacity ? 2 * queue->capacity : 16;
        queue->copies = (pending_copy *)realloc(queue->copies,
                                                queue->capacity * sizeof *queue->copies);
        if (!queue->copies) abort();
    }
    pending_copy *made = &queue->copies[queue->count++];
    memset(made->bytes, 0, sizeof made->bytes);
    memcpy(made->bytes, from, bytes);
    made->to = (unsigned char *)to;
    made->size = size;
}

void hlo_emulated_copies_done(void) {
    copy_queue *queue = &queues[threadIdx.x];
    for (uint32_t n = 0; n < queue->count; ++n) {
        const pending_copy *one = &queue->copies[n];
        memcpy(one->to, one->bytes, one->size);
        hlo_cell *cells = &shared_cells[(uintptr_t)one->to - (uintptr_t)__start_hlo_shared];
        for (uint32_t byte = 0; byte < one->size; ++byte) {
            cells[byte].write = hlo_access_made(now.interval, now.thread, now.tick);
        }
    }
    queue->count = 0;
}
}

#endif
