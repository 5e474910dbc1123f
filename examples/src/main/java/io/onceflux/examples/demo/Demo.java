package io.onceflux.examples.demo;

import static java.util.Objects.requireNonNull;

import io.onceflux.services.KafkaService;
import io.onceflux.services.PostgresService;
import io.onceflux.services.RabbitService;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/**
 * Sends the same orders, with the same duplicates and the same crash, through a naive consumer and through OnceFlux, and
 * audits both. Run it with {@code dev/demo}.
 *
 * <p>Exit code: 0 if OnceFlux's books are exact, 1 if they are not or the demo failed, 2 for an option that it does not know.
 */
public final class Demo {

    private final DemoOptions options;
    private final DeliveryPlan plan;
    private final Progress progress = new Progress();

    private Demo(DemoOptions options) {
        this.options = options;
        this.plan = DeliveryPlan.of(options.orders(), options.seed());
    }

    public static void main(String[] args) {
        DemoOptions options;
        try {
            options = DemoOptions.parse(args);
        } catch (IllegalArgumentException e) {
            System.err.println(e.getMessage() + "; see dev/demo --help");
            System.exit(2);
            return;
        }
        try {
            Report report = new Demo(options).run();
            System.out.println(report.audit());
            System.exit(report.onceFlux().areExact() ? 0 : 1);
        } catch (Exception | Error e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    private Report run() throws Exception {
        System.out.printf(
                "%,d orders reach a loyalty service in %,d messages, and an instance is killed on the way.%n"
                        + "Do the customers get the points that they should? (Seed %d; takes about a minute.)%n%n",
                options.orders(), plan.deliveries(), options.seed());
        try (PostgresService postgres = PostgresService.start()) {
            return options.kafka() ? overKafka(postgres) : overRabbit(postgres);
        }
    }

    private Report overKafka(PostgresService postgres) throws Exception {
        try (KafkaService kafka = KafkaService.start()) {
            return compare(postgres, name -> KafkaTopic.create(name, kafka.bootstrap()));
        }
    }

    private Report overRabbit(PostgresService postgres) throws Exception {
        Optional<RabbitService> rabbit = options.embeddedBroker() ? Optional.empty() : RabbitService.startIfPresent();
        if (rabbit.isPresent()) {
            try (RabbitService running = rabbit.get()) {
                return compare(postgres, name -> RabbitQueue.connect(name, running.uri()));
            }
        }
        try (EmbeddedAmqpBroker broker =
                EmbeddedAmqpBroker.start(options.embeddedBroker() ? "not wanted" : "none found")) {
            return compare(postgres, name -> RabbitQueue.connect(name, broker.uri()));
        }
    }

    /** Makes the place that the orders of one service come from. */
    @FunctionalInterface
    private interface Brokers {
        Broker open(String name) throws Exception;
    }

    private Report compare(PostgresService postgres, Brokers brokers) throws Exception {
        String postgresUrl = postgres.r2dbcUrl(postgres.newDatabase());
        try (Bookkeeping bookkeeping = Bookkeeping.in(postgresUrl)) {
            return compare(bookkeeping, brokers, postgresUrl);
        }
    }

    private Report compare(Bookkeeping bookkeeping, Brokers brokers, String postgresUrl) throws Exception {
        bookkeeping.open(DeliveryPlan.customers());
        Map<Contender, Books> books = new EnumMap<>(Contender.class);
        for (Contender contender : Contender.values()) {
            System.out.printf("%n%s: %s%n", contender.title(), contender.method());
            books.put(contender, run(contender, bookkeeping, brokers, postgresUrl));
        }
        Report report = new Report(
                requireNonNull(books.get(Contender.NAIVE)),
                requireNonNull(books.get(Contender.ONCEFLUX)),
                options.kafka() ? "topic" : "queue");
        System.out.printf("%n%s%n%s%n%n", report.table(), report.verdict());
        return report;
    }

    private Books run(Contender contender, Bookkeeping bookkeeping, Brokers brokers, String postgresUrl)
            throws Exception {
        String name = "onceflux-demo-%d-%s"
                .formatted(ProcessHandle.current().pid(), contender.title().toLowerCase(Locale.ROOT));
        try (Broker broker = brokers.open(name);
                Instances instances = new Instances(contender, broker, postgresUrl)) {
            return new Run(contender, plan, broker, bookkeeping, progress).through(instances);
        }
    }
}
