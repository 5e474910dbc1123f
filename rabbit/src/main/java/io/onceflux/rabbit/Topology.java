package io.onceflux.rabbit;

import com.rabbitmq.client.Channel;
import io.onceflux.Intake;
import io.onceflux.InvalidSetupException;
import java.io.IOException;
import java.util.concurrent.TimeoutException;

/** Makes sure that the queue and the place for dead letters are there, before anything is consumed. Blocks. */
final class Topology {

    private static final int LIMITS_BY_DEFAULT = 4;

    private final RabbitOptions options;
    private final Intake intake;
    private boolean hasWarned;

    Topology(RabbitOptions options, Intake intake) {
        this.options = options;
        this.intake = intake;
    }

    /** A consumer that keeps dead letters itself needs no place for them; declared, it is there for what the broker gives up. */
    void ensure(BrokerConnection connection) throws IOException {
        QueueDeclaration declaration = options.declaration();
        boolean toDefaultExchange = options.deadLetterExchange().isEmpty();
        if (declaration != null) {
            if (toDefaultExchange) {
                declareDeadLetterQueue(connection, declaration);
            }
            declare(
                    connection,
                    options.queue(),
                    declaration.queueArguments(options.deadLetterExchange(), options.deadLetterRoutingKey()));
        } else {
            requireQueue(connection, options.queue(), "Declare it, or use declare(QueueDeclaration).");
            if (toDefaultExchange && !intake.keepsDeadLetters()) {
                requireQueue(
                        connection,
                        options.deadLetterRoutingKey(),
                        "Dead letters go there: declare it, use declare(QueueDeclaration), or name another place with"
                                + " deadLettersTo(exchange, routingKey) or deadLetterTable(...).");
            }
        }
        if (!toDefaultExchange && (declaration != null || !intake.keepsDeadLetters())) {
            requireExchange(connection, options.deadLetterExchange());
        }
    }

    /** One that an earlier release or broker was told to declare has no argument for what is now a default: then a policy can. */
    private void declareDeadLetterQueue(BrokerConnection connection, QueueDeclaration declaration) throws IOException {
        String queue = options.deadLetterRoutingKey();
        boolean limitByDefault = connection.isRabbitMqSince(LIMITS_BY_DEFAULT);
        try {
            declare(connection, queue, declaration.deadLetterQueueArguments(limitByDefault));
        } catch (InvalidSetupException e) {
            if (!limitByDefault || !Refusals.isAbout(e, Refusals.PRECONDITION_FAILED)) {
                throw e;
            }
            declare(connection, queue, declaration.deadLetterQueueArguments(false));
            if (!hasWarned) {
                hasWarned = true;
                intake.listener()
                        .onWarning(
                                ("queue '%s' was declared without x-delivery-limit -1, and RabbitMQ drops a dead letter that has"
                                                + " been looked at 20 times: give it a policy with delivery-limit -1")
                                        .formatted(queue));
            }
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
