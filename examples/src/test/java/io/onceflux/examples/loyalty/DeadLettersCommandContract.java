package io.onceflux.examples.loyalty;

import static io.onceflux.examples.loyalty.Shop.LIMIT;
import static io.onceflux.examples.loyalty.Shop.order;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.services.ForkedJvm;
import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import reactor.core.Disposable;

/** The same at each broker. */
abstract class DeadLettersCommandContract<S extends Shop> {

    final S shop;
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();
    private LoyaltyService service;
    private Disposable running;

    DeadLettersCommandContract(S shop) {
        this.shop = shop;
    }

    @BeforeEach
    void giveUpThreeOrders() throws Exception {
        service = new LoyaltyService(shop.orders(), shop.pool);
        running = service.run().subscribe();
        shop.awaitConsumer();
        shop.publish(order("A-1", "C-8", 25));
        shop.publish(order("A-2", "C-9", 10));
        shop.publish("{\"orderId\": \"A-3\"}");
        shop.awaitDeadLetters(3);
    }

    @AfterEach
    void close() throws Exception {
        service.stop().block(LIMIT);
        assertThat(running.isDisposed()).isTrue();
        shop.close();
    }

    int execute(String... args) {
        out.getBuffer().setLength(0);
        CommandLine command = DeadLettersCommand.commandLine(shop.deadLetters());
        return command.setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true))
                .execute(args);
    }

    String told() {
        return err.toString();
    }

    @Test
    void whatIsListedSaysWhichAndWhyAndStays() {
        for (int round = 0; round < 2; round++) {
            assertThat(execute("list")).isZero();
            assertThat(out.toString().lines())
                    .hasSize(4)
                    .anyMatch(line -> line.endsWith("order-completed:A-1  PERMANENT  no customer C-8"))
                    .anyMatch(line -> line.endsWith("order-completed:A-2  PERMANENT  no customer C-9"))
                    .anyMatch(line -> line.contains("(no key)  PERMANENT  the payload could not be decoded"))
                    .endsWith("3 dead letters");
        }
        shop.awaitDeadLetters(3);
    }

    @Test
    void whatIsReplayedAfterItsCauseIsMendedIsCreditedOnceAndTheRestStays() {
        shop.addCustomers("C-8", "C-9");

        assertThat(execute("replay", "--key", "order-completed:A-2")).isZero();
        assertThat(out.toString().lines()).hasSize(2).endsWith("1 given back");
        await().atMost(LIMIT).until(() -> shop.points("C-9") == 10);
        assertThat(shop.points("C-8")).isZero();

        assertThat(execute("replay", "--reason", "no customer", "--per-second", "5"))
                .isZero();
        await().atMost(LIMIT).until(() -> shop.points("C-8") == 25);
        shop.awaitDeadLetters(1);
        assertThat(shop.ledgerRows()).isEqualTo(2);

        assertThat(execute("replay")).isZero();
        shop.awaitDeadLetters(1);
        assertThat(shop.ledgerRows()).isEqualTo(2);
    }

    @Test
    void asAProcessItHasTheSettingsOfTheService() {
        try (ForkedJvm command = ForkedJvm.start(DeadLettersCommand.class, shop.settings(), "list")) {
            command.awaitLine(line -> line.equals("3 dead letters"), LIMIT);
            assertThat(command.exitCode()).isZero();
        }
    }

    @Test
    void aWrongArgumentIsSaidInASentence() {
        assertThat(execute("replay", "--per-second", "many")).isEqualTo(2);
        assertThat(execute("replay", "--per-second", "0")).isEqualTo(1);
        assertThat(execute()).isEqualTo(2);
        assertThat(err.toString())
                .contains("Invalid value for option '--per-second'")
                .contains("perSecond must be at least 1, but is 0")
                .contains("Missing required subcommand");
    }
}
