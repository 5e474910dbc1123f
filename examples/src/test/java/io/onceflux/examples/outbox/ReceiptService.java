package io.onceflux.examples.outbox;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * A service that sends receipts, with the ways of real ones: it fails now and then, before it has sent one or after, answers too late, and
 * refuses what it does not understand. It counts what it was asked for, and what it sent.
 */
final class ReceiptService implements AutoCloseable {

    private final HttpServer server;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final CountDownLatch closing = new CountDownLatch(1);
    private final AtomicInteger calls = new AtomicInteger();
    private final Map<String, Integer> sent = new ConcurrentHashMap<>();

    ReceiptService() {
        try {
            server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        server.setExecutor(threads);
        server.createContext("/receipts", this::answer);
        server.start();
    }

    URI uri() {
        return URI.create(
                "http://127.0.0.1:%d/receipts".formatted(server.getAddress().getPort()));
    }

    int calls() {
        return calls.get();
    }

    /** How often each receipt was sent: by its key once, however often it was asked for. */
    Map<String, Integer> sent() {
        return sent;
    }

    private void answer(HttpExchange exchange) throws IOException {
        try (exchange) {
            String key = exchange.getRequestHeaders().getFirst("Idempotency-Key");
            String body = new String(exchange.getRequestBody().readAllBytes(), java.nio.charset.StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(status(key, body, calls.incrementAndGet()), -1);
        }
    }

    private int status(@Nullable String key, String body, int call) {
        if (key == null || body.contains("A-13\"")) {
            return 422;
        }
        if (call % 5 == 1) {
            return 503; // Before it did anything.
        }
        boolean isNew = sent.putIfAbsent(key, 1) == null;
        if (isNew && call % 5 == 2) {
            return 500; // It was sent, and nobody is told.
        }
        if (isNew && call % 25 == 3) {
            waitTooLong();
        }
        return isNew ? 201 : 200;
    }

    private void waitTooLong() {
        try {
            closing.await(3, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        closing.countDown();
        server.stop(0);
        threads.shutdownNow();
    }
}
