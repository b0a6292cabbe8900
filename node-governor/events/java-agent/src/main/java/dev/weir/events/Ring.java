// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/** The mapped file of a governor. {@link Attachment} calls it by one thread at a time. */
final class Ring {
    /** A buffer's index is an int: a large ring is mapped in several parts. */
    private static final int PART = 1 << 30;

    private final int lanes;
    private final int events;
    /** Header and heads of all lanes. */
    private final ByteBuffer heads;

    private final ByteBuffer[] parts;
    /** Lanes of this process whose threads may have ended since. */
    private final Map<Lane, WeakReference<Thread>> claimed = new LinkedHashMap<>();

    private Ring(FileChannel file, int lanes, int events) throws IOException {
        this.lanes = lanes;
        this.events = events;
        this.heads = file.map(MapMode.READ_WRITE, 0, Layout.HEADER + (long) lanes * Layout.HEAD);
        long eventsAt = heads.capacity();
        long eventsEnd = Layout.length(lanes, events);
        long whole = PART / laneBytes() * (long) laneBytes();
        this.parts = new ByteBuffer[(int) ((eventsEnd - eventsAt + whole - 1) / whole)];
        for (int i = 0; i < parts.length; i++) {
            long at = eventsAt + i * whole;
            parts[i] = file.map(MapMode.READ_WRITE, at, Math.min(whole, eventsEnd - at));
        }
    }

    /** Maps a live ring; null where it is retired. Throws with a reason for people where it cannot be used. */
    static Ring attach(Path path) throws IOException {
        // Never created, grown or truncated: that is the governor's alone.
        try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer header = header(file);
            if (header.getLong(Layout.AT_MAGIC) != Layout.MAGIC) {
                throw new IOException("it is not a ring of events");
            }
            is("version", header.getInt(Layout.AT_VERSION), Layout.VERSION);
            is("number of functions", header.getInt(Layout.AT_FUNCTIONS), Layout.FUNCTIONS);
            int lanes = header.getInt(Layout.AT_LANES);
            int events = header.getInt(Layout.AT_EVENTS);
            if (lanes < 1
                    || lanes > Layout.MAX_LANES
                    || events < Layout.MIN_EVENTS
                    || events > Layout.MAX_EVENTS
                    || Integer.bitCount(events) != 1) {
                throw new IOException("it says " + lanes + " lanes of " + events + " events, which is out of bounds");
            }
            long length = Layout.length(lanes, events);
            if (file.size() != length) {
                throw new IOException("it has " + file.size() + " bytes instead of " + length);
            }
            long state = header.getLong(Layout.AT_STATE);
            if (state == Layout.RETIRED) {
                return null;
            }
            is("state", state, Layout.LIVE);
            return new Ring(file, lanes, events);
        }
    }

    private static ByteBuffer header(FileChannel file) throws IOException {
        ByteBuffer header = ByteBuffer.allocate(Layout.HEADER).order(Layout.ORDER);
        while (header.hasRemaining()) {
            if (file.read(header, header.position()) < 0) {
                throw new IOException("it ends within its header, after " + header.position() + " bytes");
            }
        }
        return header;
    }

    private static void is(String what, long found, long expected) throws IOException {
        if (found != expected) {
            throw new IOException("its " + what + " is " + found + " and not " + expected);
        }
    }

    boolean isLive() {
        return (long) Layout.WORDS.getOpaque(heads, Layout.AT_STATE) == Layout.LIVE;
    }

    /** Says that it is written no more, which is the governor's to say while it has one. */
    void retire() {
        Layout.WORDS.setRelease(heads, Layout.AT_STATE, Layout.RETIRED);
    }

    /** A free lane for the calling thread; null where there is none. */
    Lane claim(ThisThread thread) {
        releaseOfDeadThreads();
        int first = (int) Long.remainderUnsigned(thread.tid, lanes);
        for (int i = 0; i < lanes; i++) {
            int number = (first + i) % lanes;
            int head = Layout.HEADER + number * Layout.HEAD;
            if (Layout.WORDS.compareAndSet(heads, head + Layout.OWNER, 0L, thread.owner())) {
                Lane lane = new Lane(heads, head, lane(number), thread);
                claimed.put(lane, new WeakReference<>(Thread.currentThread()));
                return lane;
            }
        }
        Notes.once("all " + lanes + " lanes of the ring are taken: some threads are not observed");
        return null;
    }

    private ByteBuffer lane(int number) {
        int inPart = PART / laneBytes();
        int at = number % inPart * laneBytes();
        return parts[number / inPart].slice().position(at).limit(at + laneBytes()).slice();
    }

    private int laneBytes() {
        return events * Layout.EVENT;
    }

    /** A JVM tells nobody that a thread ends: the next that comes clears up. So does the governor. */
    private void releaseOfDeadThreads() {
        Iterator<Map.Entry<Lane, WeakReference<Thread>>> all =
                claimed.entrySet().iterator();
        while (all.hasNext()) {
            Map.Entry<Lane, WeakReference<Thread>> entry = all.next();
            Thread thread = entry.getValue().get();
            if (thread == null || !thread.isAlive()) {
                entry.getKey().release();
                all.remove();
            }
        }
    }
}
