package io.onceflux.chaos;

import io.onceflux.chaos.consumer.Variant;
import io.onceflux.chaos.proxy.TcpProxy;
import io.onceflux.services.PostgresService;
import io.onceflux.services.RabbitService;
import java.nio.file.Path;

/** Everything that runs: two servers, a proxy before each, and the consumers behind the proxies. */
record Site(
        PostgresService postgres,
        RabbitService rabbit,
        TcpProxy commits,
        TcpProxy acks,
        BrokerQueue queue,
        Books books,
        Consumers consumers)
        implements AutoCloseable {

    /** Starts the servers, and declares what is needed in them; the consumers are still to be started. */
    static Site open(Variant variant, Path logs) throws Exception {
        PostgresService postgres = PostgresService.start();
        RabbitService rabbit = RabbitService.start();
        TcpProxy commits = TcpProxy.beforePostgres(postgres.host(), postgres.port());
        TcpProxy acks = TcpProxy.beforeRabbit(rabbit.host(), rabbit.port());
        String database = postgres.r2dbcUrl(postgres.newDatabase());
        BrokerQueue queue = new BrokerQueue(rabbit);
        queue.declare();
        Books books = new Books(database);
        books.open(Messages.customers());
        Consumers consumers = new Consumers(
                variant,
                rabbit.uri().replace(rabbit.host() + ":" + rabbit.port(), acks.address()),
                queue.name(),
                database.replace(postgres.host() + ":" + postgres.port(), commits.address()),
                logs);
        return new Site(postgres, rabbit, commits, acks, queue, books, consumers);
    }

    @Override
    public void close() {
        consumers.close();
        commits.close();
        acks.close();
        rabbit.close();
        postgres.close();
    }
}
