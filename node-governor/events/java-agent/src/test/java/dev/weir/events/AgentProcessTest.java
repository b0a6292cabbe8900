// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.io.TempDir;

/** Programs that run under the agent as it is shipped: the packed jar. */
class AgentProcessTest {
    private static final Path JAR = Path.of("target/weir-events-agent.jar").toAbsolutePath();
    private static final String HOT = "dev.weir.events.Target.";

    @TempDir
    Path folder;

    private Path ring() {
        return folder.resolve("t.events");
    }

    /** Runs a part of {@link Target}, which must end well whatever the agent does. Returns what it said. */
    private String run(String part, String arguments, String... options) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin/java").toString());
        command.add("-Xmx64m");
        command.add("-Xshare:auto");
        command.addAll(List.of(options));
        command.add("-javaagent:" + JAR + (arguments.isEmpty() ? "" : "=" + arguments));
        // Not `target/classes`: the agent is found in its jar or not at all.
        command.addAll(List.of("-cp", "target/test-classes", "dev.weir.events.Target", part));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        assertTrue(process.waitFor(60, TimeUnit.SECONDS));
        assertEquals(0, process.exitValue(), said);
        assertTrue(said.contains("done"), said);
        return said;
    }

    /** Attaches the agent to a program that runs; what the JVM says of it. */
    private static String attach(Process program, String arguments) throws Exception {
        String jcmd = Path.of(System.getProperty("java.home"), "bin/jcmd").toString();
        Process process = new ProcessBuilder(
                        jcmd, Long.toString(program.pid()), "JVMTI.agent_load", JAR.toString(), '"' + arguments + '"')
                .redirectErrorStream(true)
                .start();
        return new String(process.getInputStream().readAllBytes());
    }

    private interface Seen {
        boolean now() throws Exception;
    }

    private static void await(String what, Seen seen) throws Exception {
        for (int look = 0; look < 3000; look++) {
            if (seen.now()) {
                return;
            }
            Thread.sleep(10);
        }
        throw new AssertionError("waited for " + what);
    }

    private String hot(String... methods) {
        StringBuilder arguments = new StringBuilder("ring=" + ring());
        for (String method : methods) {
            arguments.append(",hot=").append(method);
        }
        return arguments.toString();
    }

    @Test
    void overloadsAndRecursionAreToldOnce() throws Exception {
        RingFile file = RingFile.create(ring(), 4, 64);
        String said = run("calls", hot("3:" + HOT + "hot", "4:" + HOT + "factorial"));
        assertEquals(List.of("enter 3", "leave 3", "enter 4", "leave 4"), file.only().events());
        assertTrue(!said.contains("weir-events"), said);
    }

    @Test
    void anExceptionLeavesToo() throws Exception {
        RingFile file = RingFile.create(ring(), 4, 64);
        String said = run("fails", hot("1:" + HOT + "fail"));
        assertTrue(said.contains("as it should"), said);
        assertEquals(List.of("enter 1", "leave 1"), file.only().events());
        assertEquals(0, file.only().since(1));
    }

    @Test
    void afterAStackOverflowNothingIsLeftInside() throws Exception {
        RingFile file = RingFile.create(ring(), 4, 256);
        run("overflows", hot("1:" + HOT + "overflow", "2:" + HOT + "hot"), "-Xss512k");
        RingFile.Seen lane = file.only();
        assertEquals(0, lane.since(1));
        assertEquals(0, lane.since(2));
        List<String> events = lane.events();
        assertEquals(List.of("enter 2", "leave 2"), events.subList(events.size() - 2, events.size()));
    }

    @Test
    void everyThreadWritesItsOwnLane() throws Exception {
        RingFile file = RingFile.create(ring(), 8, 64);
        run("threads", hot("0:" + HOT + "hot"));
        List<RingFile.Seen> lanes = file.claimed();
        assertEquals(4, lanes.size());
        for (RingFile.Seen lane : lanes) {
            assertEquals(2_000, lane.written());
            assertEquals(0, lane.since(0));
            lane.events();
        }
    }

    @Test
    void aClassOfTheJdkCanBeHot() throws Exception {
        RingFile file = RingFile.create(ring(), 4, 64);
        run("jdk", hot("1:java.util.zip.CRC32.update"));
        assertTrue(file.only().events().contains("enter 1"), file.only().events().toString());
    }

    @Test
    @EnabledForJreRange(
            min = JRE.JAVA_17,
            max = JRE.JAVA_23,
            disabledReason = "the option is of these")
    void aSecurityManagerOfTheProgramDoesNotHinder() throws Exception {
        RingFile file = RingFile.create(ring(), 4, 64);
        run("secured", hot("3:" + HOT + "hot"), "-Djava.security.manager=allow");
        assertEquals(List.of("enter 3", "leave 3"), file.only().events());
    }

    @Test
    void aProgramThatRunsIsObservedForAsLongAsWasSaidAndAgain() throws Exception {
        RingFile first = RingFile.create(folder.resolve("first.events"), 4, 64);
        RingFile second = RingFile.create(folder.resolve("second.events"), 4, 64);
        String java = Path.of(System.getProperty("java.home"), "bin/java").toString();
        Process program = new ProcessBuilder(
                        java, "-Xmx64m", "-cp", "target/test-classes", "dev.weir.events.Target", "until told")
                .redirectErrorStream(true)
                .start();
        try {
            String arguments = ",hot=1:" + HOT + "hot,for=";
            String said = attach(program, "ring=" + first.path + arguments + 2);
            assertTrue(said.contains("return code: 0"), said);
            await("events", () -> !first.claimed().isEmpty() && first.only().written() > 4);
            said = attach(program, "ring=" + second.path + arguments + 2);
            assertTrue(said.contains("return code: 0"), said);
            await("its end", () -> first.bytes().getLong(24) == 2);
            assertTrue(second.claimed().isEmpty());
            long written = first.only().written();
            said = attach(program, "ring=" + second.path + arguments + 600);
            assertTrue(said.contains("return code: 0"), said);
            await("events in the other", () -> !second.claimed().isEmpty() && second.only().written() > 4);
            assertEquals(written, first.only().written());
        } finally {
            program.getOutputStream().close();
            program.destroy();
        }
    }

    @Test
    void aMethodThatDoesNotExistIsSaid() throws Exception {
        RingFile file = RingFile.create(ring(), 4, 64);
        String said = run("calls", hot("1:" + HOT + "misspelt", "2:" + HOT + "hot"));
        assertTrue(said.contains("dev.weir.events.Target declares no method misspelt"), said);
        assertEquals(List.of("enter 2", "leave 2"), file.only().events());
    }

    @Test
    void aMethodWithoutCodeIsSaid() throws Exception {
        RingFile.create(ring(), 4, 64);
        String said = run("abstract", hot("1:dev.weir.events.Target$Bodiless.run"));
        assertTrue(said.contains("Target$Bodiless has no code for run"), said);
    }

    @Test
    void withoutARingTheProgramRunsAndIsToldOnce() throws Exception {
        String said = run("threads", hot("1:" + HOT + "hot"));
        assertEquals(2, said.split("no such file; does the governor run", -1).length, said);
    }

    @Test
    void aMalformedArgumentIsOneLine() throws Exception {
        for (String wrong : new String[] {"", "ring=/r", "ring=/r,hot=99:a.B.c", "nonsense"}) {
            String said = run("calls", wrong);
            assertEquals(1, said.lines().filter(line -> line.startsWith("weir-events: not active: ")).count(), said);
            assertEquals(2, said.lines().filter(line -> !line.contains("Sharing is only supported")).count(), said);
        }
    }

    @Test
    void aRingOfAnotherVersionIsSaid() throws Exception {
        RingFile file = RingFile.create(ring(), 4, 64);
        file.putInt(8, 7);
        String said = run("calls", hot("2:" + HOT + "hot"));
        assertTrue(said.contains("its version is 7 and not 1"), said);
    }
}
