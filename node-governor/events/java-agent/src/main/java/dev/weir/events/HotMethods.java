// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.lang.instrument.ClassFileTransformer;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;

/** Weaves {@link HotAdvice} into hot methods as their classes are loaded. Other classes cost one look into a map. */
final class HotMethods implements ClassFileTransformer {
    /** The agent's jar is on the class path too; as a resource of the bootstrap loader it is not found. */
    private static final ClassFileLocator ADVICE = ClassFileLocator.ForClassLoader.ofSystemLoader();

    private final Map<String, List<HotMethod>> byType = new HashMap<>();
    private final Set<String> seen = ConcurrentHashMap.newKeySet();

    HotMethods(List<HotMethod> methods) {
        for (HotMethod method : methods) {
            byType.computeIfAbsent(method.type, type -> new ArrayList<>()).add(method);
        }
    }

    boolean isHot(String type) {
        return byType.containsKey(type);
    }

    @Override
    public byte[] transform(
            ClassLoader loader, String path, Class<?> redefined, ProtectionDomain domain, byte[] classFile) {
        if (path == null) {
            return null;
        }
        String type = path.replace('/', '.');
        List<HotMethod> methods = byType.get(type);
        if (methods == null) {
            return null;
        }
        seen.add(type);
        try {
            return weave(type, methods, loader, classFile);
        } catch (Throwable failure) {
            // The class is loaded as it was.
            Notes.say("cannot observe " + type + ": " + failure);
            return null;
        }
    }

    private static byte[] weave(String type, List<HotMethod> methods, ClassLoader loader, byte[] classFile) {
        ClassFileLocator locator = new ClassFileLocator.Compound(
                ClassFileLocator.Simple.of(type, classFile), ClassFileLocator.ForClassLoader.of(loader));
        TypeDescription described = TypePool.Default.of(locator).describe(type).resolve();
        DynamicType.Builder<?> woven = new ByteBuddy().decorate(described, locator);
        boolean any = false;
        for (HotMethod method : methods) {
            ElementMatcher.Junction<MethodDescription> matcher = ElementMatchers.<MethodDescription>named(method.name)
                    .and(ElementMatchers.not(ElementMatchers.isAbstract()))
                    .and(ElementMatchers.not(ElementMatchers.isNative()));
            if (described.getDeclaredMethods().filter(matcher).isEmpty()) {
                boolean declared = !described
                        .getDeclaredMethods()
                        .filter(ElementMatchers.named(method.name))
                        .isEmpty();
                Notes.once(type + (declared ? " has no code for " : " declares no method ") + method.name
                        + ": it is not observed");
                continue;
            }
            woven = woven.visit(Advice.withCustomMapping()
                    .bind(HotAdvice.Id.class, method.id)
                    .to(HotAdvice.class, ADVICE)
                    .on(matcher));
            any = true;
        }
        return any ? woven.make().getBytes() : null;
    }

    /** A class that is misspelt is never loaded: after a while that is worth a line. */
    void noteMissing(long seconds) {
        for (String type : byType.keySet()) {
            if (!seen.contains(type)) {
                Notes.say("the program has not loaded " + type + " within " + seconds
                        + " s: is the name right? It will be observed once it is loaded");
            }
        }
    }
}
