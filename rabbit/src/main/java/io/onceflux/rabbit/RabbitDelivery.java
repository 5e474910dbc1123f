package io.onceflux.rabbit;

import io.onceflux.Delivery;
import io.onceflux.Settlement;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** A message of a queue, answered through the channel that it came by. */
final class RabbitDelivery implements Delivery<byte[]> {

    private final com.rabbitmq.client.Delivery message;
    private final Generation generation;
    private final RabbitOptions options;
    private final AtomicBoolean settled = new AtomicBoolean();
    private final AtomicBoolean deadLetterStored = new AtomicBoolean();

    RabbitDelivery(com.rabbitmq.client.Delivery message, Generation generation, RabbitOptions options) {
        this.message = message;
        this.generation = generation;
        this.options = options;
    }

    @Override
    public byte[] payload() {
        return message.getBody();
    }

    @Override
    public @Nullable String id() {
        return MessageIds.of(message.getProperties(), options.messageIdHeader());
    }

    @Override
    public byte[] body() {
        return message.getBody();
    }

    @Override
    public Map<String, String> headers() {
        return MessageText.of(message);
    }

    @Override
    public boolean isCurrent() {
        return generation.isCurrent();
    }

    @Override
    public Mono<Void> settle(Settlement settlement) {
        return Mono.defer(
                () -> settled.get() ? Mono.empty() : answer(settlement).doOnSuccess(done -> settled.set(true)));
    }

    private Mono<Void> answer(Settlement settlement) {
        long tag = message.getEnvelope().getDeliveryTag();
        if (settlement instanceof Settlement.DeadLetter why) {
            return generation
                    .deadLetters()
                    .publish(message, why, deadLetterStored)
                    .then(generation.acknowledge(tag));
        }
        return settlement instanceof Settlement.Requeue ? generation.requeue(tag) : generation.acknowledge(tag);
    }

    @Override
    public String origin() {
        return "queue " + options.queue() + ", delivery "
                + message.getEnvelope().getDeliveryTag()
                + (message.getEnvelope().isRedeliver() ? " (redelivered)" : "");
    }
}
