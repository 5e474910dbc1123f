package io.onceflux.kafka;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Uuid;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Notices a topic that was deleted and made again under a consumer. The client does not say so: it goes on in the new log at the place where it
 * was in the old one, and passes over what is before, if the new one is that long already.
 *
 * <p>Asks the broker, on the consumer's thread. A topic keeps its id until it is deleted, and no other has it: so if the id is still the same,
 * what was fetched before is of the same topic.
 */
final class TopicIdentity implements AutoCloseable {

    private static final Logger log = LoggerFactory.getLogger(TopicIdentity.class);
    private static final Duration BETWEEN = Duration.ofSeconds(2);
    private static final Duration LIMIT = Duration.ofSeconds(2);

    private final Supplier<Admin> admins;
    private final Map<String, Uuid> known = new HashMap<>();
    private @Nullable Admin admin;
    private long nextAt = System.nanoTime();

    TopicIdentity(Supplier<Admin> admins) {
        this.admins = admins;
    }

    /**
     * Looks at topics, every two seconds at most. Blocks for two seconds at most, where the broker does not answer; then it looks again later.
     *
     * @return those that are others now than when they were looked at before
     */
    Set<String> madeAnewLately(Set<String> topics) {
        return System.nanoTime() - nextAt < 0 ? Set.of() : look(topics, false);
    }

    /**
     * Looks at topics now, where the messages of another one must not pass for those of the one before.
     *
     * @throws IllegalStateException if nobody can say now
     */
    Set<String> madeAnewNow(Set<String> topics) {
        return look(topics, true);
    }

    private Set<String> look(Set<String> topics, boolean isNeeded) {
        if (topics.isEmpty()) {
            return Set.of();
        }
        nextAt = System.nanoTime() + BETWEEN.toNanos();
        Set<String> anew = new TreeSet<>();
        admin().describeTopics(topics, new DescribeTopicsOptions().timeoutMs((int) LIMIT.toMillis()))
                .topicNameValues()
                .forEach((topic, answer) -> {
                    Uuid id = idOf(topic, answer);
                    if (id == null && isNeeded) {
                        throw new IllegalStateException("whether topic '" + topic
                                + "' is still the same cannot be asked now, so what came from it is fetched again");
                    }
                    Uuid before = id == null ? null : known.put(topic, id);
                    if (before != null && !before.equals(id)) {
                        anew.add(topic);
                    }
                });
        return anew;
    }

    private Admin admin() {
        Admin made = admin;
        if (made == null) {
            made = admins.get();
            admin = made;
        }
        return made;
    }

    /** Null where it is not known: the topic is gone, or the broker does not answer. One that is too old to have ids has the same for all. */
    private static @Nullable Uuid idOf(String topic, KafkaFuture<TopicDescription> answer) {
        try {
            return answer.get(LIMIT.toMillis(), TimeUnit.MILLISECONDS).topicId();
        } catch (ExecutionException | TimeoutException e) {
            log.debug("topic {} cannot be looked at now", topic, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return null;
    }

    @Override
    public void close() {
        Admin made = admin;
        if (made != null) {
            made.close(Duration.ZERO);
        }
    }
}
