package io.onceflux;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** A delivery that keeps the answers that it gets. */
final class TestDelivery<T> implements Delivery<T> {

    private final @Nullable String id;
    private final T payload;
    private final List<Settlement> settlements = new CopyOnWriteArrayList<>();
    private final List<String> handling = new CopyOnWriteArrayList<>();
    private final Map<String, String> headers = new ConcurrentHashMap<>();
    private volatile @Nullable Object orderingKey;
    private volatile byte @Nullable [] body;
    private volatile boolean current = true;
    private volatile Mono<Void> answer = Mono.empty();

    TestDelivery(@Nullable String id, T payload) {
        this.id = id;
        this.payload = payload;
    }

    static TestDelivery<Order> of(Order order) {
        return new TestDelivery<>(order.id(), order);
    }

    static TestDelivery<Order> order(String id) {
        return of(Order.of(id));
    }

    static List<TestDelivery<Order>> orders(String prefix, int count) {
        return IntStream.range(0, count).mapToObj(n -> order(prefix + n)).toList();
    }

    /** What the source answers to a settlement, after it has noted it. */
    TestDelivery<T> answering(Mono<Void> theAnswer) {
        this.answer = theAnswer;
        return this;
    }

    TestDelivery<T> with(String header, String value) {
        headers.put(header, value);
        return this;
    }

    TestDelivery<T> withBody(String text) {
        body = text.getBytes(StandardCharsets.UTF_8);
        return this;
    }

    TestDelivery<T> keptInOrderBy(Object key) {
        this.orderingKey = key;
        return this;
    }

    /** "begins" and "ended", as the source is told. */
    List<String> handling() {
        return handling;
    }

    void channelLost() {
        current = false;
    }

    List<Settlement> settlements() {
        return settlements;
    }

    boolean isAcknowledged() {
        return settlements.equals(List.of(Settlement.acknowledge()));
    }

    boolean isRequeued() {
        return settlements.equals(List.of(Settlement.requeue()));
    }

    boolean isDeadLettered() {
        return settlements.size() == 1 && settlements.get(0) instanceof Settlement.DeadLetter;
    }

    @Override
    public T payload() {
        return payload;
    }

    @Override
    public @Nullable String id() {
        return id;
    }

    @Override
    public @Nullable Object orderingKey() {
        return orderingKey;
    }

    @Override
    public void handlingBegins() {
        handling.add("begins");
    }

    @Override
    public void handlingEnded() {
        handling.add("ended");
    }

    @Override
    public Mono<Void> settle(Settlement settlement) {
        return Mono.defer(() -> {
            settlements.add(settlement);
            return answer;
        });
    }

    @Override
    public boolean isCurrent() {
        return current;
    }

    @Override
    public byte @Nullable [] body() {
        return body;
    }

    @Override
    public Map<String, String> headers() {
        return headers;
    }

    @Override
    public String origin() {
        return "test delivery " + id;
    }
}
