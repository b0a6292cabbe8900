// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import static dev.weir.events.Layout.WORDS;

import java.nio.ByteBuffer;

/** One thread's part of the ring. Only that thread writes it, so loads are plain and stores have release order. */
final class Lane {
    private final ByteBuffer heads;
    private final int head;
    private final ByteBuffer events;
    /** Last slot of the lane, which has a power of two of them. */
    private final long mask;

    private final long owner;
    private long written;

    /** The lane at `head`, whose owner the calling thread has just become. */
    Lane(ByteBuffer heads, int head, ByteBuffer events, ThisThread thread) {
        this.heads = heads;
        this.head = head;
        this.events = events;
        this.mask = events.capacity() / Layout.EVENT - 1;
        this.owner = thread.owner();
        // It goes on from the last owner's, whose events may not have been read yet.
        this.written = (long) WORDS.getAcquire(heads, head + Layout.WRITTEN);
        set(Layout.PID_NAMESPACE, thread.namespace);
        set(Layout.THREAD_STARTED, thread.started);
        set(Layout.CORE, Layout.CORE_UNKNOWN);
    }

    /** Whether events may go here: the ring is live, and the governor has not taken the lane away. */
    boolean isMine() {
        return (long) WORDS.getOpaque(heads, Layout.AT_STATE) == Layout.LIVE
                && (long) WORDS.getOpaque(heads, head + Layout.OWNER) == owner;
    }

    void enter(int function, long now) {
        event(Layout.ENTER, function, now);
        setSince(function, now);
        count();
    }

    void leave(int function, long now) {
        event(Layout.LEAVE, function, now);
        setSince(function, 0);
        count();
    }

    /** Within which functions the thread is already, by their times of entry. */
    void resume(long[] since) {
        for (int function = 0; function < Layout.FUNCTIONS; function++) {
            setSince(function, since[function]);
        }
    }

    /** Gives the lane back, once its thread has ended, unless the governor was first. */
    void release() {
        if ((long) WORDS.getOpaque(heads, head + Layout.OWNER) != owner) {
            return;
        }
        for (int function = 0; function < Layout.FUNCTIONS; function++) {
            setSince(function, 0);
        }
        set(Layout.THREAD_STARTED, 0);
        set(Layout.PID_NAMESPACE, 0);
        WORDS.compareAndSet(heads, head + Layout.OWNER, owner, 0L);
    }

    private void event(long kind, int function, long now) {
        int slot = (int) (written & mask) * Layout.EVENT;
        long word = (written & 0xFFFF_FFFFL)
                | kind
                | ((long) function << Layout.FUNCTION_SHIFT)
                | Layout.EVENT_CORE_UNKNOWN;
        WORDS.set(events, slot + Layout.EVENT_TIME, now);
        WORDS.setRelease(events, slot + Layout.EVENT_WORD, word);
    }

    private void count() {
        written++;
        WORDS.setRelease(heads, head + Layout.WRITTEN, written);
    }

    private void setSince(int function, long value) {
        set(Layout.SINCE + 8 * function, value);
    }

    private void set(int offset, long value) {
        WORDS.setRelease(heads, head + offset, value);
    }
}
