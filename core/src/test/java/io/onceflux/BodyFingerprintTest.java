package io.onceflux;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.postgres.ClaimTable;
import io.r2dbc.pool.ConnectionPool;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** What is compared is the body as it arrived, whatever it is decoded to; and where there is none, that is not silent. */
class BodyFingerprintTest {

    private static final ClaimTable CLAIMS = ClaimTable.named("fingerprinted").withFingerprintColumn("fingerprint");

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);

    @BeforeEach
    void createTable() {
        database.run(CLAIMS.createSql());
    }

    @AfterEach
    void dropTable() {
        database.run("DROP TABLE IF EXISTS fingerprinted");
    }

    /** All have one id. */
    private record WithBody(String text) implements Delivery<byte[]> {

        @Override
        public byte[] payload() {
            return body();
        }

        @Override
        public String id() {
            return "id";
        }

        @Override
        public Mono<Void> settle(Settlement settlement) {
            return Mono.empty();
        }

        @Override
        public byte[] body() {
            return text.getBytes(UTF_8);
        }
    }

    private IdempotentConsumer<String> comparingBodies() {
        return IdempotentConsumer.<String>named("loyalty")
                .identifiedByMessageId()
                .claimTable(CLAIMS)
                .lanes(4)
                .fingerprintedByBody()
                .effect((text, db) -> Mono.empty())
                .build(pool);
    }

    @Test
    void aBodyIsComparedByteForByte() {
        IdempotentConsumer<byte[]> consumer = IdempotentConsumer.<byte[]>named("loyalty")
                .identifiedByMessageId()
                .claimTable(CLAIMS)
                .lanes(4)
                .fingerprintedByBody()
                .effect((body, db) -> Mono.empty())
                .build(pool);

        assertThat(consumer.process(new WithBody("1")).block()).isInstanceOf(Outcome.Applied.class);
        assertThat(consumer.process(new WithBody("1")).block()).isInstanceOf(Outcome.Duplicate.class);
        assertThat(consumer.process(new WithBody("1 ")).block()).isInstanceOf(Outcome.Conflict.class);
    }

    /** Without a fingerprint any other message with its id would be a duplicate, and nobody would know. */
    @Test
    void aMessageWhoseDeliveryHasNoBodyIsGivenUp() {
        TestDelivery<String> delivery = new TestDelivery<>("id", "1");
        List<Outcome> outcomes = Objects.requireNonNull(Flux.<Delivery<String>>just(delivery)
                .transform(comparingBodies())
                .collectList()
                .block());
        Failure failure = Consumers.failureOf(outcomes.get(0));
        assertThat(failure.kind()).isEqualTo(FailureKind.PERMANENT);
        assertThat(failure.messageKey()).isEqualTo(MessageKey.of("loyalty", "id"));
        assertThat(failure.reason()).contains("no body", "fingerprintedByBody", "use fingerprintedBy");
        assertThat(delivery.isDeadLettered()).isTrue();

        assertThat(comparingBodies().process(Delivery.of("id", "1")).block()).isInstanceOf(Outcome.Failed.class);
        assertThat(database.count("SELECT count(*) FROM fingerprinted")).isZero();
    }

    @Test
    void theBytesOfACallerAreTheBodyWhateverTheyAreDecodedTo() {
        Function<String, Outcome> handle = text -> Objects.requireNonNull(comparingBodies()
                .process(Delivery.of("id", text.getBytes(UTF_8)).map(bytes -> new String(bytes, UTF_8).strip()))
                .block());
        assertThat(handle.apply("1")).isInstanceOf(Outcome.Applied.class);
        assertThat(handle.apply("1")).isInstanceOf(Outcome.Duplicate.class);
        assertThat(handle.apply("1 ")).isInstanceOf(Outcome.Conflict.class);
    }

    /** As a record of Kafka without a value. */
    private record WithoutValue(Delivery<byte[]> empty) implements Delivery<byte[]> {

        @Override
        public byte[] payload() {
            return empty.payload();
        }

        @Override
        public @Nullable String id() {
            return empty.id();
        }

        @Override
        public byte @Nullable [] body() {
            return empty.body();
        }

        @Override
        public Map<String, String> headers() {
            return Map.of(NO_BODY, "the record has no value (a tombstone)");
        }

        @Override
        public Mono<Void> settle(Settlement settlement) {
            return empty.settle(settlement);
        }
    }

    @Test
    void aTombstoneAndAnEmptyBodyDiffer() {
        Delivery<byte[]> empty = new WithBody("");
        Function<Delivery<byte[]>, Outcome> handle = delivery -> Objects.requireNonNull(
                comparingBodies().process(delivery.map(bytes -> "anything")).block());
        assertThat(handle.apply(new WithoutValue(empty))).isInstanceOf(Outcome.Applied.class);
        assertThat(handle.apply(new WithoutValue(empty))).isInstanceOf(Outcome.Duplicate.class);
        assertThat(handle.apply(empty)).isInstanceOf(Outcome.Conflict.class);
    }
}
