// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ArgumentsTest {
    private static String refusal(String written) {
        return assertThrows(IllegalArgumentException.class, () -> Arguments.parse(written))
                .getMessage();
    }

    @Test
    void severalMethodsAreReadWithTheirIds() {
        Arguments read = Arguments.parse("ring=/r,hot=1:a.b.Outer$Inner.run,hot=15:C.call");
        assertEquals(Path.of("/r"), read.ring);
        assertEquals(2, read.methods.size());
        assertEquals(1, read.methods.get(0).id);
        assertEquals("a.b.Outer$Inner", read.methods.get(0).type);
        assertEquals("run", read.methods.get(0).name);
        assertEquals("C", read.methods.get(1).type);
        assertEquals(0, read.seconds);
        assertEquals(7, Arguments.parse("ring=/r,hot=1:a.B.c,for=7").seconds);
    }

    @Test
    void theyMayBeInAFile(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("arguments");
        assertTrue(refusal("@" + file).startsWith("arguments in " + file));
        Files.writeString(file, "ring=/r,hot=1:a.B.c\n");
        assertEquals("c", Arguments.parse("@" + file).methods.get(0).name);
        Files.writeString(file, "@" + file);
        assertTrue(refusal("@" + file).contains("is not known"));
    }

    @Test
    void whatIsMissingIsNamed() {
        assertTrue(refusal(null).startsWith("no arguments"));
        assertTrue(refusal("hot=1:a.B.c").startsWith("`ring` is missing"));
        assertTrue(refusal("ring=/r").startsWith("`hot` is missing"));
    }

    @Test
    void whatIsWrongIsNamed() {
        assertTrue(refusal("ring=/r,cold=1:a.B.c").startsWith("`cold=1:a.B.c` is not known"));
        assertTrue(refusal("ring=/r,").startsWith("`` is not known"));
        assertTrue(refusal("ring").startsWith("`ring` is not known"));
        assertTrue(refusal("ring=r,hot=1:a.B.c").contains("`r` is not an absolute path"));
        assertTrue(refusal("ring=/r,ring=/s,hot=1:a.B.c").contains("twice"));
        assertTrue(refusal("ring=/r,hot=1:a.B.c,hot=2:a.B.c").contains("`a.B.c` is given twice"));
        assertTrue(refusal("ring=/r,hot=1:a.B.<init>").contains("no constructors"));
        for (String hot : new String[] {"a.B.c", "1:c", "1:.c", "1:a.", ":a.b", ""}) {
            assertTrue(refusal("ring=/r,hot=" + hot).contains("is not ID:CLASS.METHOD"), hot);
        }
        for (String seconds : new String[] {"0", "-1", "86401", "x", ""}) {
            assertTrue(refusal("ring=/r,hot=1:a.B.c,for=" + seconds).contains("is not 1 to 86400 seconds"), seconds);
        }
        for (String id : new String[] {"16", "-1", "x", "99999999999"}) {
            assertTrue(refusal("ring=/r,hot=" + id + ":a.B.c").contains("the id is not 0 to 15"), id);
        }
    }
}
