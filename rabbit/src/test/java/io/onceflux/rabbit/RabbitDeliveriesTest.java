package io.onceflux.rabbit;

import io.onceflux.DeliveriesContract;
import io.onceflux.Delivery;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import reactor.core.publisher.Flux;

/** RabbitMQ keeps to the contract of deliveries. */
class RabbitDeliveriesTest extends DeliveriesContract {

    @Override
    protected Place open() {
        Broker broker = Broker.create();
        broker.declare();
        return new Place() {
            @Override
            public Flux<Delivery<byte[]>> deliveries() {
                return RabbitDeliveries.from(broker.options().build());
            }

            @Override
            public void publish(String id, byte[] body, Map<String, String> headers) {
                broker.publish(
                        Broker.properties(id).headers(new HashMap<>(headers)).build(), body);
            }

            @Override
            public long backlog() {
                return broker.backlog();
            }

            @Override
            public List<Letter> deadLetters() {
                return broker.deadLetters().stream()
                        .map(letter -> {
                            Map<String, String> headers = new HashMap<>();
                            letter.getProps()
                                    .getHeaders()
                                    .forEach((name, value) -> headers.put(name, String.valueOf(value)));
                            return new Letter(letter.getBody(), headers);
                        })
                        .toList();
            }

            @Override
            public String threads() {
                return broker.queue();
            }

            @Override
            public void close() {
                broker.close();
            }
        };
    }
}
