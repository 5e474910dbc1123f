package io.onceflux.rabbit;

import com.rabbitmq.client.Channel;
import io.onceflux.InvalidSetupException;
import java.io.IOException;
import java.util.concurrent.TimeoutException;

/** Makes sure that the queue and the place for dead letters are there, before anything is consumed. Blocks. */
final class Topology {

    private final RabbitOptions options;

    Topology(RabbitOptions options) {
        this.options = options;
    }

    void ensure(BrokerConnection connection) throws IOException {
        QueueDeclaration declaration = options.declaration();
        boolean toDefaultExchange = options.deadLetterExchange().isEmpty();
        String deadLetterQueue = options.deadLetterRoutingKey();
        if (declaration != null) {
            if (toDefaultExchange) {
                declare(connection, deadLetterQueue, declaration.deadLetterQueueArguments());
            }
            declare(
                    connection,
                    options.queue(),
                    declaration.queueArguments(options.deadLetterExchange(), options.deadLetterRoutingKey()));
        } else {
            requireQueue(connection, options.queue(), "Declare it, or use declare(QueueDeclaration).");
            if (toDefaultExchange) {
                requireQueue(
                        connection,
                        deadLetterQueue,
                        "Dead letters go there: declare it, use declare(QueueDeclaration), or name another place with"
                                + " deadLettersTo(exchange, routingKey).");
            }
        }
        if (!toDefaultExchange) {
            requireExchange(connection, options.deadLetterExchange());
        }
    }

    private void declare(BrokerConnection connection, String queue, java.util.Map<String, Object> arguments)
            throws IOException {
        onOwnChannel(
                connection,
                channel -> channel.queueDeclare(queue, true, false, false, arguments),
                "Queue '%s' exists at %s with other properties than declared. Declare it as it is, or delete it first."
                        .formatted(queue, options.broker()));
    }

    private void requireQueue(BrokerConnection connection, String queue, String mend) throws IOException {
        onOwnChannel(
                connection,
                channel -> channel.queueDeclarePassive(queue),
                "Queue '%s' does not exist at %s. %s".formatted(queue, options.broker(), mend));
    }

    private void requireExchange(BrokerConnection connection, String exchange) throws IOException {
        onOwnChannel(
                connection,
                channel -> channel.exchangeDeclarePassive(exchange),
                "Exchange '%s', where dead letters go, does not exist at %s. Declare it."
                        .formatted(exchange, options.broker()));
    }

    /** A refusal closes the channel, so every question has its own. */
    private void onOwnChannel(BrokerConnection connection, BrokerCall call, String sentence) throws IOException {
        Channel channel = connection.openChannel();
        try {
            call.on(channel);
            channel.close();
        } catch (TimeoutException e) {
            throw new IOException("the broker did not answer in time", e);
        } catch (IOException e) {
            if (Refusals.isAbout(e, Refusals.NOT_FOUND)) {
                throw new InvalidSetupException(sentence, e);
            }
            if (Refusals.isAbout(e, Refusals.PRECONDITION_FAILED)) { // Only the broker knows which argument differs.
                throw new InvalidSetupException(sentence + " RabbitMQ said: " + Refusals.wordsOf(e), e);
            }
            if (Refusals.isAbout(e, Refusals.ACCESS_REFUSED)) {
                throw new InvalidSetupException(
                        "The user has no right at %s to look at or declare what '%s' needs. RabbitMQ said: %s"
                                .formatted(options.broker(), options.queue(), Refusals.wordsOf(e)),
                        e);
            }
            throw e;
        }
    }

    /** A call that may block. */
    @FunctionalInterface
    private interface BrokerCall {
        void on(Channel channel) throws IOException;
    }
}
