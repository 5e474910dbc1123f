package io.onceflux.examples.loyalty;

import io.onceflux.ClaimQuery;
import io.onceflux.KeptClaim;
import io.onceflux.KeptClaims;
import io.onceflux.MessageKey;
import io.onceflux.postgres.ClaimRows;
import io.onceflux.postgres.ClaimTable;
import io.r2dbc.spi.ConnectionFactory;
import java.io.PrintWriter;
import java.time.Instant;
import java.util.Objects;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import reactor.core.Exceptions;

/**
 * What an operator asks the claims: was this order credited, and when; and, on purpose and written down, to forget that it was.
 *
 * <p>It has the database of {@link LoyaltyApplication}. Exit code: 0, 1 if there is no such claim or the database did not let it, 2 for a
 * wrong argument.
 */
@Command(
        name = "claims",
        mixinStandardHelpOptions = true,
        description = "Looks at what counts as credited, and forgets an order on purpose.")
public final class ClaimsCommand {

    private static final String CONSUMER = "loyalty";
    private static final Pattern HASHED = Pattern.compile("sha256:[0-9a-f]{64}");
    private static final String KEYS =
            "Such as order-completed:A-1001. One of more than 255 bytes is listed as sha256:...; both find it.";

    private final KeptClaims claims;

    @Spec
    @Nullable
    CommandSpec spec;

    private ClaimsCommand(KeptClaims claims) {
        this.claims = claims;
    }

    public static void main(String[] args) {
        System.exit(commandLine(LoyaltyApplication.database()).execute(args));
    }

    static CommandLine commandLine(ConnectionFactory database) {
        return new CommandLine(new ClaimsCommand(KeptClaims.in(ClaimTable.processedMessages(), database)))
                .setExecutionExceptionHandler((error, command, arguments) -> {
                    Throwable cause = Exceptions.unwrap(error);
                    command.getErr().println(cause.getMessage() == null ? cause.toString() : cause.getMessage());
                    return CommandLine.ExitCode.SOFTWARE;
                });
    }

    @Command(description = "Prints the claims of the service, or some of them, in the order of their keys.")
    void list(
            @Option(
                            names = "--prefix",
                            description = "Only keys that begin so, as they are listed, such as order-completed:A-1.")
                    @Nullable
                    String prefix,
            @Option(names = "--since", description = "Only those of this time or later, such as 2026-11-30T12:00:00Z.")
                    @Nullable
                    Instant since,
            @Option(names = "--limit", defaultValue = "100", description = "How many. Default: ${DEFAULT-VALUE}.")
                    int limit) {
        ClaimQuery which = ClaimQuery.all().ofConsumer(CONSUMER);
        which = prefix == null ? which : which.startingWith(prefix);
        which = since == null ? which : which.since(since);
        claims.find(which)
                .take(limit)
                .doOnNext(claim -> out().println(line(claim)))
                .then()
                .block();
        out().flush();
    }

    @Command(description = "Says whether an order was credited, and when.")
    int find(@Parameters(paramLabel = "KEY", description = KEYS) String key) {
        KeptClaim claim = claims.find(keyOf(key)).block();
        out().println(claim == null ? key + " is not claimed" : line(claim));
        out().flush();
        return claim == null ? CommandLine.ExitCode.SOFTWARE : CommandLine.ExitCode.OK;
    }

    @Command(description = "Forgets that an order was credited: it is credited again when its message comes again.")
    int forget(
            @Parameters(paramLabel = "KEY", description = KEYS) String key,
            @Option(names = "--who", required = true, description = "Who decides so.") String who,
            @Option(names = "--why", required = true, description = "Why, for who asks later.") String why) {
        boolean wasThere =
                Boolean.TRUE.equals(claims.forget(keyOf(key), who, why).block());
        out().println(key + (wasThere ? " is forgotten" : " is not claimed"));
        out().flush();
        return wasThere ? CommandLine.ExitCode.OK : CommandLine.ExitCode.SOFTWARE;
    }

    @Command(description = "Says how large the table is, and how old.")
    void size() {
        ClaimRows.Size size = Objects.requireNonNull(claims.size().block());
        Instant oldest = claims.oldest().block();
        out().printf(
                        "about %,d claims, %,d kB and %,d kB of indexes; the oldest is of %s%n",
                        size.rows(),
                        size.dataBytes() / 1_000,
                        size.indexBytes() / 1_000,
                        oldest == null ? "no time" : oldest);
        out().flush();
    }

    /** What reads like a listed hash is one: hashed once more, it would name no claim, or another one. */
    private static MessageKey keyOf(String given) {
        return HASHED.matcher(given).matches() ? new MessageKey(CONSUMER, given) : MessageKey.of(CONSUMER, given);
    }

    private PrintWriter out() {
        return Objects.requireNonNull(spec).commandLine().getOut();
    }

    private static String line(KeptClaim claim) {
        return "%s  %s".formatted(claim.claimedAt(), claim.id()).replaceAll("\\p{Cntrl}", " ");
    }
}
