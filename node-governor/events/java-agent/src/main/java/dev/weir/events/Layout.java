// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** The shared memory, version 1, as {@code src/layout.rs} describes it. Offsets in bytes, words little endian. */
final class Layout {
    /** The bytes `WEIREVT1` as a number. */
    static final long MAGIC = 0x3154564552494557L;

    static final int VERSION = 1;
    static final int FUNCTIONS = 16;
    static final int MAX_LANES = 4096;
    static final int MIN_EVENTS = 16;
    static final int MAX_EVENTS = 65536;

    static final int HEADER = 4096;
    static final int AT_MAGIC = 0;
    static final int AT_VERSION = 8;
    static final int AT_LANES = 12;
    static final int AT_EVENTS = 16;
    static final int AT_FUNCTIONS = 20;
    static final int AT_STATE = 24;
    static final long LIVE = 1;
    static final long RETIRED = 2;

    /** Of one lane's head; the following are offsets in it. */
    static final int HEAD = 256;

    static final int OWNER = 0;
    static final int THREAD_STARTED = 8;
    static final int PID_NAMESPACE = 16;
    static final int WRITTEN = 64;
    static final int CORE = 72;
    static final int SINCE = 128;

    static final int EVENT = 16;
    static final int EVENT_TIME = 0;
    static final int EVENT_WORD = 8;
    static final long ENTER = 1L << 32;
    static final long LEAVE = 2L << 32;
    static final int FUNCTION_SHIFT = 40;
    /** A JVM does not tell which core a thread runs on: the governor asks the kernel. */
    static final long CORE_UNKNOWN = -1;

    static final long EVENT_CORE_UNKNOWN = 0xFFFFL << 48;

    static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;

    static final VarHandle WORDS = MethodHandles.byteBufferViewVarHandle(long[].class, ORDER);

    private Layout() {}

    /** Of the whole file. */
    static long length(int lanes, int events) {
        return HEADER + (long) lanes * HEAD + (long) lanes * events * EVENT;
    }
}
