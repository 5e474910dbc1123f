package io.onceflux.services;

import java.util.Map;
import java.util.Optional;
import java.util.function.BooleanSupplier;

/**
 * Decides where one kind of server comes from, from the environment and whether Docker answers.
 *
 * <p>An address that is set is the choice; whether something answers there is found out later, and never changes it.
 * Docker is only asked when the answer matters.
 */
record ServiceChoice(
        String server, String addressVariable, String exampleAddress, Map<String, String> env, BooleanSupplier docker) {

    /** {@code ENV}, {@code DOCKER} or {@code LOCAL}; throws when the environment forces one that cannot be had. */
    ServiceMode decide() {
        ServiceMode mode = ServiceMode.of(env);
        return switch (mode) {
            case LOCAL -> mode;
            case ENV -> {
                if (givenAddress().isEmpty()) {
                    throw new IllegalStateException("%s=env asks for a %s by address, but %s is not set: set it to %s"
                            .formatted(ServiceMode.VARIABLE, server, addressVariable, exampleAddress));
                }
                yield mode;
            }
            case DOCKER -> {
                if (!docker.getAsBoolean()) {
                    throw new IllegalStateException(
                            "%s=docker asks for a %s in a container, but no Docker engine answers: start one, or unset %s."
                                    .formatted(ServiceMode.VARIABLE, server, ServiceMode.VARIABLE));
                }
                yield mode;
            }
            case AUTO -> {
                if (givenAddress().isPresent()) {
                    yield ServiceMode.ENV;
                }
                yield docker.getAsBoolean() ? ServiceMode.DOCKER : ServiceMode.LOCAL;
            }
        };
    }

    Optional<String> givenAddress() {
        return Optional.ofNullable(env.get(addressVariable)).map(String::strip).filter(address -> !address.isEmpty());
    }

    String address() {
        return givenAddress().orElseThrow(() -> new IllegalStateException(addressVariable + " is not set."));
    }

    /** Settings and configuration lines are for servers that are started here. */
    void refuseSettings(Map<String, String> settings) {
        if (!settings.isEmpty()) {
            throw new IllegalStateException(
                    "The settings %s need a %s that is started for them, not the one of %s: unset it or set %s=local."
                            .formatted(settings.keySet(), server, addressVariable, ServiceMode.VARIABLE));
        }
    }

    /** Never shows the address: it may hold a password. */
    @Override
    public String toString() {
        return "ServiceChoice[" + server + "]";
    }
}
