// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.security.AccessController;
import java.security.PrivilegedActionException;
import java.security.PrivilegedExceptionAction;

/** One thread's side: how deep it is in each function, and its lane if it has one. Used by that thread alone. */
final class Producer {
    private static final long RETRY_NS = 1_000_000_000;

    private final Attachment attachment;
    private final int[] depth = new int[Layout.FUNCTIONS];
    /** Entry into the outermost call, also while there is no lane to write it to. 0 = outside. */
    private final long[] since = new long[Layout.FUNCTIONS];

    private Lane lane;
    private boolean tried;
    private long triedAt;
    /** Claiming a lane runs code of the JDK, which may be hot itself. */
    private boolean claiming;

    Producer(Attachment attachment) {
        this.attachment = attachment;
    }

    int enter(int function) {
        if (claiming) {
            return 0;
        }
        int deep = ++depth[function];
        if (deep == 1) {
            long now = System.nanoTime();
            if (lane != null && lane.isMine()) {
                lane.enter(function, now);
            } else {
                claim(now);
                if (lane != null) {
                    lane.enter(function, now);
                }
            }
            since[function] = now;
        }
        return deep;
    }

    /**
     * Sets the depth rather than counting down: where a call's own leave was lost (a stack overflow inside it), the
     * calls around it put it right.
     */
    void leave(int function, int entered) {
        if (entered <= 0) {
            return;
        }
        depth[function] = entered - 1;
        if (entered == 1) {
            since[function] = 0;
            if (lane != null && lane.isMine()) {
                lane.leave(function, System.nanoTime());
            }
        }
    }

    /** Takes a lane of the current ring, or none for a second. */
    private void claim(long now) {
        lane = null;
        if (tried && now - triedAt < RETRY_NS) {
            return;
        }
        tried = true;
        triedAt = now;
        claiming = true;
        try {
            lane = AccessController.doPrivileged(
                    (PrivilegedExceptionAction<Lane>) () -> attachment.claim(now));
            if (lane != null) {
                // It may be within other functions already.
                lane.resume(since);
                tried = false;
            }
        } catch (PrivilegedActionException failure) {
            Notes.once("a thread is not observed: " + failure.getCause().getMessage());
        } catch (Throwable failure) {
            Notes.once("a thread is not observed: " + failure);
        } finally {
            claiming = false;
        }
    }
}
