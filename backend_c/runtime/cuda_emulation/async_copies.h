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
    uint32_t size, group;
};

struct copy_queue {
    pending_copy *copies;
    uint32_t count, capacity, groups; /* groups that have ended */
} queues[HLO_MOST_THREADS];

/* Of the threads of a block that begins: what others left behind is forgotten. */
void forget_copies() {
    for (uint32_t n = 0; n < blockDim.x; ++n) queues[n].count = queues[n].groups = 0;
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
    made->group = queue->groups;
}

void hlo_emulated_copies_group(void) { ++queues[threadIdx.x].groups; }
}

namespace {

/* Makes the copies of the first groups, the oldest first. */
void make_copies(uint32_t groups) {
    copy_queue *queue = &queues[threadIdx.x];
    uint32_t made = 0;
    for (; made < queue->count && queue->copies[made].group < groups; ++made) {
        const pending_copy *one = &queue->copies[made];
        memcpy(one->to, one->bytes, one->size);
        hlo_cell *cells = &shared_cells[(uintptr_t)one->to - (uintptr_t)__start_hlo_shared];
        for (uint32_t byte = 0; byte < one->size; ++byte) {
            cells[byte].write = hlo_access_made(now.interval, now.thread, now.tick);
        }
    }
    queue->count -= made;
    memmove(queue->copies, queue->copies + made, queue->count * sizeof *queue->copies);
}

}  // namespace

extern "C" {

void hlo_emulated_copies_done(void) { make_copies(UINT32_MAX); }

void hlo_emulated_copies_but(uint32_t last) {
    const uint32_t groups = queues[threadIdx.x].groups;
    make_copies(groups > last ? groups - last : 0);
}
}

#endif
