package io.onceflux.kafka;

import io.onceflux.InvalidSetupException;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.GroupAuthorizationException;
import org.apache.kafka.common.errors.InconsistentGroupProtocolException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.UnreleasedInstanceIdException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.jspecify.annotations.Nullable;

/** Reads the errors of the Kafka client: by their types, never by their words. */
final class Refusals {

    private static final int DEEPEST = 16;

    private Refusals() {}

    static <E extends Throwable> @Nullable E find(Throwable error, Class<E> type) {
        Throwable at = error;
        for (int depth = 0; at != null && depth < DEEPEST; depth++) {
            if (type.isInstance(at)) {
                return type.cast(at);
            }
            at = at.getCause();
        }
        return null;
    }

    /** The root of the error. For a person. */
    static String wordsOf(Throwable error) {
        Throwable at = error;
        for (int depth = 0; depth < DEEPEST && at.getCause() != null; depth++) {
            at = at.getCause();
        }
        return at.getMessage() == null ? at.toString() : at.getClass().getSimpleName() + ": " + at.getMessage();
    }

    /** What is wrong with the set-up, if that is what the error says; the error itself if not. */
    static Throwable explained(KafkaOptions options, Throwable error) {
        if (error instanceof InvalidSetupException) {
            return error;
        }
        String sentence = sentence(options, error);
        return sentence == null ? error : refusal(options, sentence, error);
    }

    private static @Nullable String sentence(KafkaOptions options, Throwable error) {
        if (has(error, ConfigException.class)) {
            return "The Kafka client refuses its settings.";
        }
        if (has(error, AuthenticationException.class)) {
            return "Kafka at %s refuses the login: check security.protocol, sasl.* and ssl.* of the client's properties."
                    .formatted(options.broker());
        }
        if (has(error, GroupAuthorizationException.class)) {
            return "The user has no right to group '%s' at %s: grant READ on the group."
                    .formatted(options.groupId(), options.broker());
        }
        TopicAuthorizationException topics = find(error, TopicAuthorizationException.class);
        if (topics != null) {
            return "The user has no right to read topics %s at %s: grant READ and DESCRIBE."
                    .formatted(topics.unauthorizedTopics(), options.broker());
        }
        if (has(error, InconsistentGroupProtocolException.class)) {
            return ("Group '%s' at %s has members whose partition.assignment.strategy or group.protocol has nothing in common with"
                            + " this consumer's: set the same.")
                    .formatted(options.groupId(), options.broker());
        }
        if (has(error, UnsupportedVersionException.class)) {
            return "Kafka at %s is too old for what is set, such as group.protocol=consumer."
                    .formatted(options.broker());
        }
        if (has(error, NoOffsetForPartitionException.class)) {
            return ("Group '%s' at %s has no committed offset and auto.offset.reset is none: commit one, or set it to earliest or"
                            + " latest.")
                    .formatted(options.groupId(), options.broker());
        }
        if (has(error, UnreleasedInstanceIdException.class)) {
            return ("Another consumer of group '%s' still has the group.instance.id of this one: if it has ended without a word, the group lets"
                            + " go of it when its session times out; otherwise give each instance its own.")
                    .formatted(options.groupId());
        }
        if (isReplaced(error)) {
            return "Another consumer of group '%s' has the same group.instance.id: it has taken the place of this one. Give each instance its own."
                    .formatted(options.groupId());
        }
        return null;
    }

    /** Whether it is worth waiting for, also at the start. */
    static boolean isReleasedInTime(Throwable error) {
        return has(error, UnreleasedInstanceIdException.class);
    }

    /** Whether another instance has this one's place, which it got by the same group.instance.id. */
    static boolean isReplaced(Throwable error) {
        return has(error, FencedInstanceIdException.class);
    }

    /** Makes a client; what it does not like is a matter of its settings. */
    static <C> C making(KafkaOptions options, Supplier<C> maker) {
        try {
            return maker.get();
        } catch (KafkaException e) {
            throw refusal(options, "The Kafka client cannot be made with its settings.", e);
        }
    }

    /** With the client's own words and cause, unless they repeat a secret. */
    private static InvalidSetupException refusal(KafkaOptions options, String sentence, Throwable error) {
        for (Throwable at = error; at != null; at = at.getCause()) {
            if (ClientSettings.tellsASecret(options, at.getMessage())) {
                return new InvalidSetupException(
                        sentence + " What Kafka said is not repeated: it has a password or the like in it.");
            }
        }
        return new InvalidSetupException(sentence + " Kafka said: " + wordsOf(error), error);
    }

    private static boolean has(Throwable error, Class<? extends Throwable> type) {
        return find(error, type) != null;
    }
}
