package io.onceflux.benchmarks.scale;

import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.benchmarks.variant.CountingConsumer;

/** One of several consumers of a topic, as a process. On SIGTERM it stops, and then says what its outcomes were. */
public final class ScaledConsumer {

    static final String OUTCOMES = "outcomes ";

    private ScaledConsumer() {}

    public static void main(String[] args) throws InterruptedException {
        Site site = new Site(args[0], Integer.parseInt(args[1]), args[2], args[3], args[4], "", args[5]);
        CountingConsumer consumer = new CountingConsumer(site);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.close();
            System.out.println(OUTCOMES + consumer.applied() + " " + consumer.duplicates());
        }));
        consumer.run();
    }

    static String[] arguments(Site site) {
        return new String[] {
            site.host(),
            Integer.toString(site.port()),
            site.user(),
            site.password(),
            site.database(),
            site.kafkaBootstrap()
        };
    }
}
