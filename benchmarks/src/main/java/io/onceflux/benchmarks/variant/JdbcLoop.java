package io.onceflux.benchmarks.variant;

import io.onceflux.benchmarks.scenario.Books;
import io.onceflux.benchmarks.scenario.Order;
import io.onceflux.benchmarks.scenario.Orders;
import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.benchmarks.scenario.Statements;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.HdrHistogram.Histogram;

/**
 * The baseline: a loop on each of some threads, with a connection of its own and statements that stay prepared. Nothing is
 * between it and the driver, so it is about the most that a transaction a message can do from Java.
 */
final class JdbcLoop implements Variant {

    private final Supply supply;
    private final Books books;
    private final boolean claims;
    private final ExecutorService threads;
    private final List<Worker> workers = new ArrayList<>();
    private final List<Future<?>> running = new ArrayList<>();

    JdbcLoop(Case what, Site site) {
        this.supply = new Supply(new Orders(what.duplicates()));
        this.claims = what.claims();
        this.books = Books.open(site);
        this.threads = Executors.newFixedThreadPool(what.lanes());
        try {
            for (int i = 0; i < what.lanes(); i++) {
                workers.add(new Worker(DriverManager.getConnection(site.jdbcUrl(), site.user(), site.password())));
            }
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void pace(double perSecond) {
        supply.pace(perSecond);
    }

    @Override
    public Histogram latencies() {
        return supply.latencies();
    }

    @Override
    public long run(Duration time) {
        return supply.openFor(time, () -> workers.forEach(worker -> running.add(threads.submit(worker::loop))));
    }

    @Override
    public void rest() {
        try {
            for (Future<?> loop : running) {
                loop.get();
            }
            running.clear();
        } catch (InterruptedException | ExecutionException e) {
            throw new IllegalStateException("the loop failed", e);
        }
        supply.awaitAllDone();
    }

    @Override
    public void audit() {
        books.requireOnce(supply.distinct(), claims);
    }

    @Override
    public void close() {
        threads.shutdownNow();
        workers.forEach(Worker::close);
    }

    private final class Worker {

        private final Connection connection;
        private final PreparedStatement claim;
        private final PreparedStatement addToBalance;
        private final PreparedStatement enterInLedger;

        Worker(Connection connection) throws SQLException {
            this.connection = connection;
            connection.setAutoCommit(false);
            claim = connection.prepareStatement(Statements.CLAIM);
            addToBalance = connection.prepareStatement(Statements.ADD_TO_BALANCE);
            enterInLedger = connection.prepareStatement(Statements.ENTER_IN_LEDGER);
        }

        /** A Callable, so that its exception is kept. */
        Void loop() throws SQLException {
            while (supply.isOpen()) {
                long index = supply.take();
                long due = supply.dueAt(index);
                Supply.awaitTime(due);
                handle(supply.message(index));
                supply.done(due);
            }
            return null;
        }

        private void handle(Order order) throws SQLException {
            if (!claims || isFresh(order)) {
                addToBalance.setLong(1, order.points());
                addToBalance.setString(2, order.customerId());
                if (addToBalance.executeUpdate() != 1) {
                    throw new IllegalStateException("no customer " + order.customerId());
                }
                enterInLedger.setString(1, order.orderId());
                enterInLedger.setString(2, order.customerId());
                enterInLedger.setLong(3, order.points());
                enterInLedger.executeUpdate();
            }
            connection.commit();
        }

        private boolean isFresh(Order order) throws SQLException {
            claim.setString(1, "jdbc");
            claim.setString(2, order.key());
            return claim.executeUpdate() == 1;
        }

        void close() {
            try {
                connection.close();
            } catch (SQLException e) {
                throw new IllegalStateException(e);
            }
        }
    }
}
