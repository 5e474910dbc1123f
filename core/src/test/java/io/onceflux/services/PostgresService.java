package io.onceflux.services;

import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A real PostgreSQL for tests and for the demo.
 *
 * <p>It comes from the first of these that is there:
 *
 * <ol>
 *   <li>the address in {@code ONCEFLUX_POSTGRES_URL}, {@code r2dbc:postgresql://user:password@host:port/database}, whose
 *       user may create databases. If nothing answers there, that is a failure: nothing else is tried.
 *   <li>a container, where a Docker engine answers
 *   <li>an embedded server: PostgreSQL's own binaries from Maven, on loopback, with fsync on
 * </ol>
 *
 * <p>{@code ONCEFLUX_SERVICES} set to {@code env}, {@code docker} or {@code local} (embedded) forces one of them;
 * {@code auto} is the order above. A choice that cannot be had fails with an {@link IllegalStateException} that says how
 * to get it. What was chosen is printed as one line on stdout.
 *
 * <p>Containers and embedded servers, with their data, end with this JVM, however it ends. {@link #newDatabase()} and the
 * address may be used by any thread, the rest by one at a time.
 */
public final class PostgresService extends ControlledService {
    static final String URL_VARIABLE = "ONCEFLUX_POSTGRES_URL";
    private static final AtomicInteger DATABASES = new AtomicInteger();
    private static @Nullable PostgresService shared;

    private final PostgresAddress address;
    private final boolean foreign;
    private final String description;
    private final Queue<String> leftBehind = new ConcurrentLinkedQueue<>();

    private PostgresService(PostgresSource source) {
        super(source.control());
        this.address = source.address();
        this.foreign = source.isForeign();
        this.description = source.describe();
    }

    /** Starts a server with {@code max_connections} 200 and full durability. */
    public static PostgresService start() {
        return start(Map.of());
    }

    /** Starts a server with these settings of {@code postgresql.conf} on top; refused for a server given by address. */
    public static PostgresService start(Map<String, String> settings) {
        return start(System.getenv(), ContainerServer::dockerAnswers, settings);
    }

    /** The one server of this JVM for tests that keep to their own database or schema; started when first asked for. */
    public static synchronized PostgresService shared() {
        if (shared == null) {
            PostgresService started = start();
            Runtime.getRuntime().addShutdownHook(new Thread(started::close, "onceflux-postgres-close"));
            shared = started;
        }
        return shared;
    }

    static PostgresService start(Map<String, String> env, BooleanSupplier docker, Map<String, String> settings) {
        ServiceChoice choice = new ServiceChoice("PostgreSQL", URL_VARIABLE, PostgresAddress.EXAMPLE, env, docker);
        PostgresService service = new PostgresService(PostgresSource.of(choice, settings));
        System.out.println(service);
        return service;
    }

    public String host() {
        return address.host();
    }

    public int port() {
        return address.port();
    }

    public String user() {
        return address.user();
    }

    public String password() {
        return address.password();
    }

    /** The database that was there from the start. */
    public String database() {
        return address.database();
    }

    public String r2dbcUrl() {
        return r2dbcUrl(database());
    }

    public String r2dbcUrl(String database) {
        return address.r2dbcUrl(database);
    }

    /** Creates an empty database and returns its name. On a server given by address, {@link #close()} drops it. */
    public String newDatabase() {
        String name = "onceflux_%d_%s_%d"
                .formatted(
                        ProcessHandle.current().pid(),
                        Long.toString(System.currentTimeMillis(), 36),
                        DATABASES.incrementAndGet());
        PostgresAdmin.run(r2dbcUrl(), "CREATE DATABASE " + name);
        if (foreign) {
            leftBehind.add(name);
        }
        return name;
    }

    @Override
    public void close() {
        for (String name = leftBehind.poll(); name != null; name = leftBehind.poll()) {
            PostgresAdmin.run(
                    r2dbcUrl(),
                    "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE datname = '" + name + "'");
            PostgresAdmin.run(r2dbcUrl(), "DROP DATABASE IF EXISTS " + name);
        }
        super.close();
    }

    /** The line that was printed at the start. */
    @Override
    public String toString() {
        return description;
    }
}
