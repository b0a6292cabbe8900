// SPDX-License-Identifier: Apache-2.0
package dev.weir.search;

import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.nio.charset.StandardCharsets;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.matcher.ElementMatchers;

/**
 * What document 000 calls SysErr, as an agent of the laboratory: every entry and exit of the hot method is written to a
 * file with a system call of its own. The argument is the file, which belongs on tmpfs.
 */
public final class WritePerEvent {
    private static FileOutputStream file;

    private WritePerEvent() {}

    public static void premain(String path, Instrumentation instrumentation) throws IOException {
        file = new FileOutputStream(path);
        new AgentBuilder.Default()
                .type(ElementMatchers.named("org.elasticsearch.search.query.QueryPhase"))
                .transform((builder, type, loader, module, domain) ->
                        builder.visit(Advice.to(Code.class).on(ElementMatchers.named("execute"))))
                .installOn(instrumentation);
    }

    /** Called by woven code, for the hot method and whatever it calls of the same name. */
    public static void write(String kind) {
        String line = kind + " " + Thread.currentThread().getId() + " " + System.nanoTime() + "\n";
        try {
            file.write(line.getBytes(StandardCharsets.US_ASCII));
        } catch (IOException failure) {
            throw new IllegalStateException(failure);
        }
    }

    static final class Code {
        private Code() {}

        @Advice.OnMethodEnter
        static void enter() {
            write("enter");
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void leave() {
            write("leave");
        }
    }
}
