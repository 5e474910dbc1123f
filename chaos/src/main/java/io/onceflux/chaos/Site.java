package io.onceflux.chaos;

import io.onceflux.chaos.proxy.TcpProxy;
import io.onceflux.services.ControlledService;
import io.onceflux.services.KafkaService;
import io.onceflux.services.PostgresService;
import io.onceflux.services.RabbitService;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * Everything that runs: two servers, and the consumers, each with a proxy of its own before the database, and before RabbitMQ.
 *
 * @param acks the proxies before RabbitMQ; none before Kafka
 */
record Site(
        PostgresService postgres,
        ControlledService broker,
        List<TcpProxy> commits,
        List<TcpProxy> acks,
        Place place,
        Books books,
        Consumers consumers)
        implements AutoCloseable {

    /** Starts the servers, and makes what is needed in them; the consumers are still to be started. */
    static Site open(ConsumerSetup setup, QueueType queueType, Path logs) throws Exception {
        PostgresService postgres = PostgresService.start();
        List<TcpProxy> commits = perConsumer(() -> TcpProxy.beforePostgres(postgres.host(), postgres.port()));
        if (queueType == QueueType.KAFKA) {
            KafkaService kafka = KafkaService.start();
            BrokerTopic topic = new BrokerTopic(kafka);
            topic.create();
            return open(setup, postgres, kafka, commits, List.of(), topic, logs);
        }
        RabbitService rabbit = RabbitService.start();
        List<TcpProxy> acks = perConsumer(() -> TcpProxy.beforeRabbit(rabbit.host(), rabbit.port()));
        BrokerQueue queue = new BrokerQueue(rabbit, acks);
        queue.declare(queueType);
        return open(setup, postgres, rabbit, commits, acks, queue, logs);
    }

    private static Site open(
            ConsumerSetup setup,
            PostgresService postgres,
            ControlledService broker,
            List<TcpProxy> commits,
            List<TcpProxy> acks,
            Place place,
            Path logs) {
        String database = postgres.r2dbcUrl(postgres.newDatabase());
        Books books = new Books(database, setup.variant().goesByPosition());
        books.open(Messages.customers());
        Consumers consumers = new Consumers(
                number -> setup.arguments(
                        number,
                        place.address(number),
                        place.name(),
                        database.replace(
                                postgres.host() + ":" + postgres.port(),
                                commits.get(number - 1).address())),
                logs);
        return new Site(postgres, broker, commits, acks, place, books, consumers);
    }

    private static List<TcpProxy> perConsumer(Supplier<TcpProxy> proxy) {
        return Stream.generate(proxy).limit(Consumers.COUNT).toList();
    }

    @Override
    public void close() {
        consumers.close();
        commits.forEach(TcpProxy::close);
        acks.forEach(TcpProxy::close);
        broker.close();
        postgres.close();
    }
}
