package io.onceflux.kafka;

import io.onceflux.DeadLetter;
import io.onceflux.DeadLetters;
import io.onceflux.InvalidSetupException;
import java.time.Duration;
import java.util.List;
import java.util.function.Function;
import java.util.function.Predicate;
import org.apache.kafka.clients.admin.Admin;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;

/**
 * The dead letters in topics of Kafka. Replayed ones go back to the topic that they came from, behind the messages that wait there,
 * with the key, value and headers that they had, and without the headers that said why.
 *
 * <p>A record cannot be taken out of a topic. So a replay stores, behind the dead letter and in its partition, a mark that it was given
 * back: a record without key and value, with the header {@code x-onceflux-given-back}. What is marked is not listed any more. Letters and
 * marks stay until the topic's retention deletes them.
 *
 * <p>The oldest come first within each partition. Dead letters that are a part of their message, because all of it was too large, are
 * listed, and not given back.
 *
 * <p>A letter goes back and is marked in one transaction of Kafka, and one replay of a topic runs at a time: one that begins ends those that
 * run. So a letter is given back once, also where messages are identified by their position ({@link KafkaOptions.IdSource#POSITION}) and a
 * replayed one is a new message. That holds for who reads with {@code isolation.level=read_committed}, as consumers of OnceFlux do if not told
 * otherwise. A replay that is killed in the middle of that keeps them waiting for three times the {@code confirmLimit}, and 10 s at least.
 *
 * <p>Errors: {@link InvalidSetupException} for a refused login or a right that is missing; {@link java.io.IOException} if there is no
 * such topic or the broker cannot be reached. Listed values are emitted on a thread of their own. The user needs READ on the topics of dead
 * letters, and to replay also WRITE on them and on those that they go back to, and WRITE and DESCRIBE on the transactional id {@code
 * onceflux-replay-} with the name of the topic of dead letters behind it; what is missing is found before a letter goes back.
 */
public final class KafkaDeadLetters implements DeadLetters {

    private final KafkaOptions options;
    private final @Nullable String topic;

    private KafkaDeadLetters(KafkaOptions options, @Nullable String topic) {
        this.options = options;
        this.topic = topic;
    }

    /** Those of the consumers with these options. */
    public static DeadLetters of(KafkaOptions options) {
        return new KafkaDeadLetters(options, null);
    }

    /**
     * Those in one topic. Its name is that of the topic they came from with the suffix, or the options have one topic.
     *
     * @throws InvalidSetupException if neither is so: nobody could tell where a letter goes that does not say it itself
     */
    public static DeadLetters in(String deadLetterTopic, KafkaOptions options) {
        Checked.topic("deadLetterTopic", deadLetterTopic);
        Checked.that(
                deadLetterTopic.endsWith(options.deadLetterSuffix())
                        || options.topics().size() == 1,
                "deadLetterTopic '%s' does not end with '%s', and the options do not have one topic that its letters could come from"
                        .formatted(deadLetterTopic, options.deadLetterSuffix()));
        return new KafkaDeadLetters(options, deadLetterTopic);
    }

    @Override
    public Flux<DeadLetter> list() {
        return onOwnThread(false, topics -> kept(topics).map(KeptRecord::letter));
    }

    @Override
    public Flux<DeadLetter> replay(Predicate<DeadLetter> which, int perSecond) {
        if (perSecond < 1) {
            throw new InvalidSetupException("perSecond must be at least 1, but is " + perSecond);
        }
        return onOwnThread(
                true,
                topics -> kept(topics)
                        .filter(record -> which.test(record.letter()))
                        .delayElements(Duration.ofNanos(1_000_000_000L / perSecond))
                        .concatMap(
                                record -> BrokerThread.call(topics.thread(), () -> topics.giveBack(record))
                                        .filter(given -> given)
                                        .map(given -> record.letter()),
                                1));
    }

    private static Flux<KeptRecord> kept(DeadLetterTopics topics) {
        return Flux.<KeptRecord>generate(sink -> topics.next(sink)).subscribeOn(topics.thread());
    }

    private Flux<DeadLetter> onOwnThread(boolean replaying, Function<DeadLetterTopics, Flux<DeadLetter>> work) {
        return Flux.usingWhen(
                Mono.fromSupplier(() -> BrokerThread.start("onceflux-dead-letters-" + options.groupId())),
                thread -> Flux.usingWhen(
                        BrokerThread.call(thread, () -> DeadLetterTopics.open(options, topics(), thread, replaying))
                                .onErrorMap(error -> Refusals.explained(options, error)),
                        work,
                        topics -> closed(topics, thread)),
                BrokerThread::end);
    }

    private List<String> topics() {
        if (topic != null) {
            return List.of(topic);
        }
        if (options.pattern() == null) {
            return options.topics().stream().map(options::deadLetterTopicOf).toList();
        }
        Predicate<String> wanted = options.patternWithoutDeadLetters().asMatchPredicate();
        String suffix = options.deadLetterSuffix();
        try (Admin admin = Topology.admin(options)) {
            return Topology.get(admin.listTopics().names()).stream()
                    .filter(name ->
                            name.endsWith(suffix) && wanted.test(name.substring(0, name.length() - suffix.length())))
                    .sorted()
                    .toList();
        }
    }

    private static Mono<Void> closed(DeadLetterTopics topics, Scheduler thread) {
        return BrokerThread.call(thread, () -> {
                    topics.close();
                    return true;
                })
                .then();
    }
}
