package io.onceflux.chaos;

import io.onceflux.chaos.proxy.TcpProxy;
import io.onceflux.services.PostgresService;
import io.onceflux.services.RabbitService;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** Everything that runs: two servers, and the consumers, each with a proxy of its own before either server. */
record Site(
        PostgresService postgres,
        RabbitService rabbit,
        List<TcpProxy> commits,
        List<TcpProxy> acks,
        BrokerQueue queue,
        Books books,
        Consumers consumers)
        implements AutoCloseable {

    /** Starts the servers, and declares what is needed in them; the consumers are still to be started. */
    static Site open(ConsumerSetup setup, QueueType queueType, Path logs) throws Exception {
        PostgresService postgres = PostgresService.start();
        RabbitService rabbit = RabbitService.start();
        List<TcpProxy> commits = perConsumer(() -> TcpProxy.beforePostgres(postgres.host(), postgres.port()));
        List<TcpProxy> acks = perConsumer(() -> TcpProxy.beforeRabbit(rabbit.host(), rabbit.port()));
        String database = postgres.r2dbcUrl(postgres.newDatabase());
        BrokerQueue queue = new BrokerQueue(rabbit);
        queue.declare(queueType);
        Books books = new Books(database);
        books.open(Messages.customers());
        Consumers consumers = new Consumers(
                number -> setup.arguments(
                        number,
                        rabbit.uri()
                                .replace(
                                        rabbit.host() + ":" + rabbit.port(),
                                        acks.get(number - 1).address()),
                        queue.name(),
                        database.replace(
                                postgres.host() + ":" + postgres.port(),
                                commits.get(number - 1).address())),
                logs);
        return new Site(postgres, rabbit, commits, acks, queue, books, consumers);
    }

    private static List<TcpProxy> perConsumer(Supplier<TcpProxy> proxy) {
        return Stream.generate(proxy).limit(Consumers.COUNT).toList();
    }

    @Override
    public void close() {
        consumers.close();
        commits.forEach(TcpProxy::close);
        acks.forEach(TcpProxy::close);
        rabbit.close();
        postgres.close();
    }
}
