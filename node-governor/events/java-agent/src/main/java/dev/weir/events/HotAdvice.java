// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import net.bytebuddy.asm.Advice;

/** The code that is copied into a hot method. It may name no class but {@link Events}. */
final class HotAdvice {
    private HotAdvice() {}

    /** Stands for the id of the hot method. */
    @Retention(RetentionPolicy.RUNTIME)
    @interface Id {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static int enter(@Id int id) {
        return Events.enter(id);
    }

    @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void leave(@Id int id, @Advice.Enter int depth) {
        Events.leave(id, depth);
    }
}
