// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.nio.file.Path;

/** What woven code calls. Nothing that goes wrong here may reach the program. */
public final class Events {
    private static volatile Attachment attachment;

    private static final ThreadLocal<Producer> PRODUCER = ThreadLocal.withInitial(() -> new Producer(attachment));

    private Events() {}

    /** Says which ring is written, before the first method is woven. Threads keep what they were given first. */
    static synchronized void attachTo(Path ring) {
        if (attachment == null) {
            attachment = new Attachment(ring);
        } else {
            attachment.moveTo(ring);
        }
    }

    /** After the last method is as it was. */
    static void detach() {
        attachment.retire();
    }

    /**
     * The calling thread enters the function.
     *
     * @return how deep it is in the function now: 1 for the outermost call. To be handed to {@link #leave}.
     */
    public static int enter(int function) {
        return PRODUCER.get().enter(function);
    }

    /**
     * The calling thread leaves the function, in whatever way.
     *
     * @param depth what {@link #enter} returned for this call; 0 where it failed
     */
    public static void leave(int function, int depth) {
        PRODUCER.get().leave(function, depth);
    }
}
