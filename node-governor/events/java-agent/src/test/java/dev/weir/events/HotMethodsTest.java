// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.List;
import org.junit.jupiter.api.Test;

class HotMethodsTest {
    private final HotMethods hot = new HotMethods(
            List.of(HotMethod.parse("1:a.Loaded.run"), HotMethod.parse("2:a.Misspelt.run")));

    @Test
    void aClassThatIsNeverLoadedIsSaidAfterAWhile() {
        PrintStream stderr = System.err;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        System.setErr(new PrintStream(said, true));
        // What is no class file is said too, and changes nothing.
        assertNull(hot.transform(null, "a/Loaded", null, null, new byte[10]));
        hot.noteMissing(0);
        System.setErr(stderr);
        String lines = said.toString();
        assertTrue(lines.contains("cannot observe a.Loaded"), lines);
        assertTrue(lines.contains("has not loaded a.Misspelt within 0 s"), lines);
        assertEquals(2, lines.lines().count(), lines);
    }

    @Test
    void otherClassesAreLeftAlone() {
        assertNull(hot.transform(null, "a/Other", null, null, new byte[10]));
        assertNull(hot.transform(null, null, null, null, new byte[10]));
    }
}
