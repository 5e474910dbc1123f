package io.onceflux.kafka;

import io.onceflux.Backoff;
import io.onceflux.Intake;
import io.onceflux.InvalidSetupException;
import io.onceflux.kafka.Fencing.Beginning;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.util.retry.Retry;

/**
 * What is looked at when partitions become this consumer's. A topic may be new since the start, where topics are those that match a
 * pattern. And with an offset fence others have moved it meanwhile: it is read again, before the first message.
 */
final class TakeOver {

    private final KafkaOptions options;
    private final Intake intake;
    private final Topology topology;
    private final @Nullable Fencing fencing;
    private final Scheduler broker;
    private final Backoff backoff;

    /** @param broker the thread for calls that block */
    TakeOver(KafkaOptions options, Intake intake, Topology topology, @Nullable Fencing fencing, Scheduler broker) {
        this.options = options;
        this.intake = intake;
        this.topology = topology;
        this.fencing = fencing;
        this.broker = broker;
        this.backoff = Backoff.between(options.minBackoff(), options.maxBackoff());
    }

    /**
     * Looks, and lets the partitions begin that wait for it. What fails meanwhile is tried again after a pause: to end for it would hand the
     * partitions on to others, who have the same broker and database.
     *
     * @param watcher told what failed
     * @return empty; {@link Fencing.BrokenFenceException} if nobody can say what of them is done
     */
    Mono<Void> lookAt(List<Assignment> taken, Watcher watcher) {
        if (taken.isEmpty()) {
            return Mono.empty();
        }
        Mono<Void> look = Mono.defer(() -> {
                    List<Assignment> still =
                            taken.stream().filter(one -> !one.hasEnded()).toList();
                    return fencing == null || still.isEmpty() ? Mono.empty() : lookAtFence(fencing, still);
                })
                .onErrorMap(error -> Refusals.explained(options, error))
                .retryWhen(Retry.from(failures -> failures.concatMap(failure -> {
                    if (failure.failure() instanceof InvalidSetupException) {
                        return Mono.error(failure.failure());
                    }
                    Duration pause = backoff.after((int) failure.totalRetries() + 1);
                    watcher.lost(
                            "partitions that were taken over cannot be looked at: "
                                    + Refusals.wordsOf(failure.failure()),
                            pause);
                    return Mono.delay(pause);
                })));
        return ensureNew(taken).then(look);
    }

    private Mono<Void> ensureNew(List<Assignment> taken) {
        Set<String> added = taken.stream()
                .map(assignment -> assignment.partition().topic())
                .filter(topology::isNew)
                .collect(Collectors.toSet());
        return added.isEmpty()
                ? Mono.empty()
                : onBroker(() -> {
                            topology.ensureAdded(intake, added);
                            return true;
                        })
                        .onErrorResume(error -> {
                            intake.listener()
                                    .onWarning("topics %s were added, and could not be looked at: %s"
                                            .formatted(added, Refusals.wordsOf(error)));
                            return Mono.empty();
                        })
                        .then();
    }

    /** The group is read before the rows: healthy, it is ahead of them by no message. */
    private Mono<Void> lookAtFence(Fencing fence, List<Assignment> taken) {
        Set<TopicPartition> partitions =
                taken.stream().map(Assignment::partition).collect(Collectors.toSet());
        return intake.ready()
                .then(onBroker(topology::committed))
                .zipWhen(committed -> fence.places(), Beginning::new)
                .flatMap(beginning -> onBroker(() -> {
                    fence.requireFit(beginning, partitions);
                    taken.forEach(assignment -> assignment.beginAt(beginning.begin(assignment.partition())));
                    fence.warnOfPassedOver(beginning, partitions);
                    return true;
                }))
                .then();
    }

    private <V> Mono<V> onBroker(Callable<V> call) {
        return BrokerThread.call(broker, call);
    }
}
