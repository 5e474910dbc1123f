package io.onceflux;

import io.onceflux.services.PostgresService;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * The database of a test class, in a static field with {@code @RegisterExtension}: every test finds its tables empty, and
 * must leave no connection in use and no transaction open. Pools are a test's own, and are closed after it: the class is
 * not to have the lifecycle {@code PER_CLASS}.
 */
final class FreshDatabase implements BeforeEachCallback, AfterEachCallback {

    private final Supplier<Database> source;
    private @Nullable Database database;

    private FreshDatabase(Supplier<Database> source) {
        this.source = source;
    }

    /** On the server that all tests share. */
    static FreshDatabase create() {
        return new FreshDatabase(Database::create);
    }

    static FreshDatabase on(PostgresService service) {
        return new FreshDatabase(() -> Database.on(service));
    }

    /** Created when first asked for: a server that cannot be had fails the tests themselves, with its sentence. */
    Database database() {
        if (database == null) {
            database = source.get();
        }
        return database;
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        database().empty();
    }

    @Override
    public void afterEach(ExtensionContext context) {
        try {
            database().assertNothingLeaked();
        } finally {
            database().closePools();
        }
    }
}
