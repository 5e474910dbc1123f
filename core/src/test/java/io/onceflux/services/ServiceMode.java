package io.onceflux.services;

import java.util.Arrays;
import java.util.Locale;
import java.util.Map;

/** Where a real server may come from. {@code AUTO} is the order env, Docker, local; the others force one of them. */
enum ServiceMode {
    AUTO,
    ENV,
    DOCKER,
    LOCAL;

    static final String VARIABLE = "ONCEFLUX_SERVICES";

    static ServiceMode of(Map<String, String> env) {
        String value = env.getOrDefault(VARIABLE, "").strip();
        if (value.isEmpty()) {
            return AUTO;
        }
        return Arrays.stream(values())
                .filter(mode -> mode.toString().equals(value.toLowerCase(Locale.ROOT)))
                .findFirst()
                .orElseThrow(() -> new IllegalStateException(
                        VARIABLE + "=" + value + " is none of auto, env, docker, local: set one of them or unset it."));
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
