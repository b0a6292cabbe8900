// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;

/**
 * The governor's side: makes ring files and reads them back. Offsets are written out as the description of the layout
 * has them, so that a wrong constant in {@link Layout} is noticed.
 */
final class RingFile {
    final Path path;
    final int lanes;
    final int events;

    private RingFile(Path path, int lanes, int events) {
        this.path = path;
        this.lanes = lanes;
        this.events = events;
    }

    static RingFile create(Path path, int lanes, int events) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(4096 + lanes * 256 + lanes * events * 16).order(ByteOrder.LITTLE_ENDIAN);
        bytes.put(new byte[] {'W', 'E', 'I', 'R', 'E', 'V', 'T', '1'});
        bytes.putInt(8, 1).putInt(12, lanes).putInt(16, events).putInt(20, 16);
        bytes.putLong(24, 1).putLong(32, 1_700_000_000_000L);
        Files.write(path, bytes.array());
        return new RingFile(path, lanes, events);
    }

    /** Writes over one word, as the governor does when it retires a file or takes a lane away. */
    void put(long offset, long value) throws IOException {
        ByteBuffer word = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(0, value);
        try (var file = Files.newByteChannel(path, StandardOpenOption.WRITE)) {
            file.position(offset).write(word);
        }
    }

    void putInt(long offset, int value) throws IOException {
        ByteBuffer word = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(0, value);
        try (var file = Files.newByteChannel(path, StandardOpenOption.WRITE)) {
            file.position(offset).write(word);
        }
    }

    void retire() throws IOException {
        put(24, 2);
    }

    void truncate(long length) throws IOException {
        try (var file = Files.newByteChannel(path, StandardOpenOption.WRITE)) {
            file.truncate(length);
        }
    }

    ByteBuffer bytes() throws IOException {
        return ByteBuffer.wrap(Files.readAllBytes(path)).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** The lanes that somebody owns. */
    List<Seen> claimed() throws IOException {
        ByteBuffer bytes = bytes();
        List<Seen> claimed = new ArrayList<>();
        for (int lane = 0; lane < lanes; lane++) {
            if (bytes.getLong(4096 + lane * 256) != 0) {
                claimed.add(new Seen(this, bytes, lane));
            }
        }
        return claimed;
    }

    /** The one lane that is owned. */
    Seen only() throws IOException {
        List<Seen> claimed = claimed();
        if (claimed.size() != 1) {
            throw new AssertionError(claimed.size() + " lanes are owned");
        }
        return claimed.get(0);
    }

    /** One lane as it was when the file was read. */
    static final class Seen {
        final int lane;
        private final RingFile file;
        private final ByteBuffer bytes;

        private Seen(RingFile file, ByteBuffer bytes, int lane) {
            this.file = file;
            this.bytes = bytes;
            this.lane = lane;
        }

        /** The word of the lane's head at this offset. */
        long head(int offset) {
            return bytes.getLong(4096 + lane * 256 + offset);
        }

        long tid() {
            return head(0) >>> 32;
        }

        long pid() {
            return head(0) & 0xFFFF_FFFFL;
        }

        long written() {
            return head(64);
        }

        long since(int function) {
            return head(128 + 8 * function);
        }

        private int slot(long number) {
            return 4096 + file.lanes * 256 + lane * file.events * 16 + (int) (number % file.events) * 16;
        }

        long time(long number) {
            return bytes.getLong(slot(number));
        }

        long word(long number) {
            return bytes.getLong(slot(number) + 8);
        }

        /** The events as `enter 3`, those that are still there. */
        List<String> events() {
            List<String> events = new ArrayList<>();
            for (long number = Math.max(0, written() - file.events); number < written(); number++) {
                long word = word(number);
                if ((word & 0xFFFF_FFFFL) != (number & 0xFFFF_FFFFL)) {
                    throw new AssertionError("slot of event " + number + " says " + Long.toHexString(word));
                }
                String kind = (word >>> 32 & 0xFF) == 1 ? "enter " : "leave ";
                events.add(kind + (word >>> 40 & 0xFF));
            }
            return events;
        }
    }
}
