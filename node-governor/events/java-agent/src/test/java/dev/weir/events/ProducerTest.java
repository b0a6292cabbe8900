// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What one thread writes, byte for byte. */
class ProducerTest {
    @TempDir
    Path folder;

    private Path path;

    @BeforeEach
    void name() {
        path = folder.resolve("es.events");
    }

    private Producer producer() {
        return new Producer(new Attachment(path));
    }

    private static void call(Producer producer, int function) {
        producer.leave(function, producer.enter(function));
    }

    @Test
    void oneCallIsWrittenAsTheLayoutSays() throws IOException {
        RingFile file = RingFile.create(path, 4, 16);
        byte[] before = file.bytes().array();
        long from = System.nanoTime();
        Producer producer = producer();
        int depth = producer.enter(5);
        RingFile.Seen inside = file.only();
        assertEquals(inside.time(0), inside.since(5));
        producer.leave(5, depth);
        long until = System.nanoTime();

        RingFile.Seen seen = file.only();
        assertEquals(ProcessHandle.current().pid(), seen.pid());
        assertTrue(Files.exists(Path.of("/proc/self/task/" + seen.tid())));
        assertEquals(seen.tid() % 4, seen.lane);
        String stat = Files.readString(Path.of("/proc/self/task/" + seen.tid() + "/stat"));
        assertEquals(stat.substring(stat.lastIndexOf(") ") + 2).split(" ")[19], Long.toString(seen.head(8)));
        String namespace = Files.readSymbolicLink(Path.of("/proc/self/ns/pid")).toString();
        assertEquals("pid:[" + seen.head(16) + "]", namespace);
        assertEquals(2, seen.written());
        assertEquals(-1, seen.head(72), "core");
        for (int function = 0; function < 16; function++) {
            assertEquals(0, seen.since(function));
        }
        assertEquals(0xFFFF_05_01_00000000L, seen.word(0));
        assertEquals(0xFFFF_05_02_00000001L, seen.word(1));
        assertTrue(from <= seen.time(0) && seen.time(0) <= seen.time(1) && seen.time(1) <= until);
        untouched(before, file.bytes().array(), seen.lane, 2);
    }

    /** Nothing is written but the named words of the lane and its first slots. */
    private static void untouched(byte[] before, byte[] after, int lane, int slots) {
        assertEquals(before.length, after.length);
        int head = 4096 + lane * 256;
        int events = 4096 + 4 * 256 + lane * 16 * 16;
        for (int i = 0; i < before.length; i++) {
            int inHead = i - head;
            boolean word = inHead >= 0 && inHead < 24 || inHead >= 64 && inHead < 80 || inHead >= 128 && inHead < 256;
            boolean slot = i >= events && i < events + slots * 16;
            assertTrue(before[i] == after[i] || word || slot, "byte " + i);
        }
    }

    @Test
    void onlyTheOutermostOfNestedCallsIsTold() throws IOException {
        RingFile file = RingFile.create(path, 4, 16);
        Producer producer = producer();
        int outer = producer.enter(1);
        long since = file.only().since(1);
        int inner = producer.enter(1);
        call(producer, 1);
        assertEquals(since, file.only().since(1));
        producer.leave(1, inner);
        assertEquals(since, file.only().since(1));
        producer.leave(1, outer);
        assertEquals(List.of("enter 1", "leave 1"), file.only().events());
        assertEquals(0, file.only().since(1));
    }

    @Test
    void functionsAreCountedApart() throws IOException {
        RingFile file = RingFile.create(path, 4, 16);
        Producer producer = producer();
        int one = producer.enter(0);
        call(producer, 15);
        producer.leave(0, one);
        assertEquals(List.of("enter 0", "enter 15", "leave 15", "leave 0"), file.only().events());
    }

    @Test
    void aLeaveThatWasLostInsideIsPutRightByTheOutermostCall() throws IOException {
        RingFile file = RingFile.create(path, 4, 16);
        Producer producer = producer();
        int outer = producer.enter(1);
        producer.enter(1);
        producer.leave(1, outer);
        assertEquals(0, file.only().since(1));
        call(producer, 1);
        assertEquals(List.of("enter 1", "leave 1", "enter 1", "leave 1"), file.only().events());
    }

    @Test
    void theLaneIsWrittenRoundAndRound() throws IOException {
        RingFile file = RingFile.create(path, 4, 16);
        Producer producer = producer();
        for (int i = 0; i < 1_000; i++) {
            call(producer, i % 16);
        }
        assertEquals(2_000, file.only().written());
        assertEquals(16, file.only().events().size());
    }

    @Test
    void everyThreadHasALaneAndTheDeadGiveTheirsBack() throws Exception {
        RingFile file = RingFile.create(path, 3, 16);
        Attachment attachment = new Attachment(path);
        CountDownLatch all = new CountDownLatch(3);
        CountDownLatch seen = new CountDownLatch(1);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            threads.add(new Thread(() -> {
                call(new Producer(attachment), 2);
                all.countDown();
                try {
                    seen.await();
                } catch (InterruptedException ended) {
                    throw new IllegalStateException(ended);
                }
            }));
        }
        threads.forEach(Thread::start);
        all.await();
        Set<Long> tids = new HashSet<>();
        for (RingFile.Seen lane : file.claimed()) {
            assertEquals(List.of("enter 2", "leave 2"), lane.events());
            tids.add(lane.tid());
        }
        assertEquals(3, tids.size());
        // None is left for this thread.
        Producer late = new Producer(attachment);
        call(late, 2);
        assertEquals(3, file.claimed().size());
        seen.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
        Producer next = new Producer(attachment);
        call(next, 7);
        // The lane's count goes on, and its last owner's events are still there.
        assertEquals(List.of("enter 2", "leave 2", "enter 7", "leave 7"), file.only().events());
        assertEquals(4, file.only().written());
    }

    @Test
    void aRetiredRingIsLeftForTheNewOneAndTheStateComesAlong() throws IOException {
        RingFile old = RingFile.create(path, 4, 16);
        Producer producer = producer();
        int outer = producer.enter(1);
        long since = old.only().since(1);
        // As the governor does: the new file takes the name, the old one says so to those who have it mapped.
        Path aside = folder.resolve("old");
        Files.createLink(aside, path);
        Files.delete(path);
        RingFile fresh = RingFile.create(path, 4, 16);
        try (var file = Files.newByteChannel(aside, java.nio.file.StandardOpenOption.WRITE)) {
            file.position(24).write(java.nio.ByteBuffer.allocate(8).order(java.nio.ByteOrder.LITTLE_ENDIAN).putLong(0, 2));
        }
        // Within a second of the first attachment nothing is looked for.
        long deadline = System.nanoTime() + 5_000_000_000L;
        while (fresh.claimed().isEmpty() && System.nanoTime() < deadline) {
            call(producer, 2);
            Thread.onSpinWait();
        }
        assertEquals(since, fresh.only().since(1));
        producer.leave(1, outer);
        assertEquals(0, fresh.only().since(1));
        assertEquals(List.of("enter 2", "leave 2", "leave 1"), fresh.only().events());
    }

    @Test
    void aThreadThatHasBeenInterruptedAttachesAndStaysInterrupted() throws IOException {
        RingFile file = RingFile.create(path, 4, 16);
        Producer producer = producer();
        Thread.currentThread().interrupt();
        call(producer, 1);
        assertTrue(Thread.interrupted());
        assertEquals(List.of("enter 1", "leave 1"), file.only().events());
    }

    @Test
    void aLaneThatIsTakenAwayWithinACallIsNotWrittenAtItsEnd() throws IOException {
        RingFile file = RingFile.create(path, 4, 16);
        Producer producer = producer();
        int depth = producer.enter(1);
        file.put(4096 + file.only().lane * 256, 42);
        byte[] before = file.bytes().array();
        producer.leave(1, depth);
        assertArrayEquals(before, file.bytes().array());
    }

    @Test
    void aLaneThatTheGovernorTookAwayIsNotWritten() throws IOException {
        RingFile file = RingFile.create(path, 4, 16);
        Producer producer = producer();
        call(producer, 1);
        int lane = file.only().lane;
        file.put(4096 + lane * 256, 42);
        call(producer, 1);
        List<RingFile.Seen> lanes = file.claimed();
        assertEquals(2, lanes.size());
        for (RingFile.Seen seen : lanes) {
            assertEquals(2, seen.written(), "lane " + seen.lane);
        }
    }
}
