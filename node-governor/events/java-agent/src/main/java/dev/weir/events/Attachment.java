// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.io.IOException;
import java.nio.file.Path;

/** The ring at a path, which may be absent, retired, or there again with another file. */
final class Attachment {
    private static final long RETRY_NS = 1_000_000_000;

    private Path path;
    private Ring ring;
    private boolean tried;
    private long triedAt;

    Attachment(Path path) {
        this.path = path;
    }

    /** The next claim is of this one. */
    synchronized void moveTo(Path other) {
        path = other;
        ring = null;
        tried = false;
    }

    /** Whoever has a lane of it claims another before the next event. */
    synchronized void retire() {
        if (ring != null) {
            ring.retire();
        }
    }

    /** A lane for the calling thread, or null. Looks for a ring at most once a second. */
    synchronized Lane claim(long now) throws IOException {
        if (ring == null || !ring.isLive()) {
            ring = null;
            if (tried && now - triedAt < RETRY_NS) {
                return null;
            }
            tried = true;
            triedAt = now;
            ring = attach();
        }
        return ring == null ? null : ring.claim(ThisThread.identify());
    }

    private Ring attach() {
        // A channel closes under a thread that has been interrupted, and attaching is not the program's doing.
        boolean interrupted = Thread.interrupted();
        try {
            return Ring.attach(path);
        } catch (IOException failure) {
            Notes.once("no events to " + path + " until it is right: " + reason(failure));
            return null;
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static String reason(IOException failure) {
        if (failure instanceof java.nio.file.NoSuchFileException) {
            return "there is no such file; does the governor run?";
        }
        if (failure instanceof java.nio.file.AccessDeniedException) {
            return "this user may not write it; is it in the file's group?";
        }
        return failure.getMessage();
    }
}
