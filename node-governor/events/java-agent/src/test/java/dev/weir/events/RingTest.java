// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Files that are no ring to write to. */
class RingTest {
    @TempDir
    Path folder;

    private RingFile file() throws IOException {
        return RingFile.create(folder.resolve("es.events"), 4, 16);
    }

    /** Why the file is refused; it must be the same afterwards, and a call must do nothing. */
    private static String refusal(RingFile file) throws IOException {
        byte[] before = Files.readAllBytes(file.path);
        String reason = assertThrows(IOException.class, () -> Ring.attach(file.path)).getMessage();
        Producer producer = new Producer(new Attachment(file.path));
        producer.leave(1, producer.enter(1));
        assertArrayEquals(before, Files.readAllBytes(file.path));
        return reason;
    }

    @Test
    void anotherVersionIsRefused() throws IOException {
        RingFile file = file();
        file.putInt(8, 2);
        assertEquals("its version is 2 and not 1", refusal(file));
    }

    @Test
    void anotherFileIsRefused() throws IOException {
        RingFile file = file();
        file.put(0, 0);
        assertEquals("it is not a ring of events", refusal(file));
    }

    @Test
    void aTruncatedRingIsRefused() throws IOException {
        RingFile file = file();
        long whole = 4096 + 4 * 256 + 4 * 16 * 16;
        file.truncate(whole - 1);
        assertEquals("it has 6143 bytes instead of 6144", refusal(file));
        file.truncate(100);
        assertEquals("it ends within its header, after 100 bytes", refusal(file));
    }

    @Test
    void sizesOutOfBoundsAreRefused() throws IOException {
        RingFile file = file();
        for (int events : new int[] {0, 8, 17, 24, 1 << 17, -16}) {
            file.putInt(16, events);
            assertTrue(refusal(file).contains("out of bounds"), "events " + events);
        }
        file.putInt(16, 16);
        for (int lanes : new int[] {0, 4097, -1}) {
            file.putInt(12, lanes);
            assertTrue(refusal(file).contains("out of bounds"), "lanes " + lanes);
        }
    }

    @Test
    void aRetiredRingIsNotAttached() throws IOException {
        RingFile file = file();
        file.retire();
        assertNull(Ring.attach(file.path));
    }

    @Test
    void whatIsNotThereIsNotMade() throws IOException {
        Path path = folder.resolve("absent");
        assertThrows(IOException.class, () -> Ring.attach(path));
        Producer producer = new Producer(new Attachment(path));
        producer.leave(1, producer.enter(1));
        assertTrue(Files.notExists(path));
    }

    @Test
    void theLargestRingThatIsAllowedCanBeWritten() throws IOException {
        Path path = folder.resolve("large.events");
        RingFile small = RingFile.create(path, 1, 16);
        small.putInt(12, 4096);
        small.putInt(16, 65536);
        try (var file = new java.io.RandomAccessFile(path.toFile(), "rw")) {
            // Sparse: it takes next to no room.
            file.setLength(4096 + 4096L * 256 + 4096L * 65536 * 16);
            Producer producer = new Producer(new Attachment(path));
            producer.leave(1, producer.enter(1));
            long tid = ThisThread.identify().tid;
            file.seek(4096 + tid % 4096 * 256 + 64);
            assertEquals(2, Long.reverseBytes(file.readLong()));
            file.seek(4096 + 4096L * 256 + tid % 4096 * 65536 * 16 + 16 + 8);
            assertEquals(0xFFFF_01_02_00000001L, Long.reverseBytes(file.readLong()));
        }
    }
}
