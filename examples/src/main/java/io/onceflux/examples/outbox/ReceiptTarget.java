package io.onceflux.examples.outbox;

import io.onceflux.PermanentFailure;
import io.onceflux.outbox.OutboxMessage;
import io.onceflux.outbox.Target;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;

/** Sends receipts to a service that knows each by its {@code Idempotency-Key}, as the IETF's draft of that header says. */
public final class ReceiptTarget implements Target {

    private final HttpClient http = HttpClient.newHttpClient();
    private final URI service;

    public ReceiptTarget(URI service) {
        this.service = service;
    }

    @Override
    public Publisher<?> send(OutboxMessage message) {
        HttpRequest request = HttpRequest.newBuilder(service)
                .header("Idempotency-Key", message.idempotencyKey())
                .header("Content-Type", "application/json")
                .POST(BodyPublishers.ofByteArray(message.payload()))
                .build();
        return Mono.fromFuture(() -> http.sendAsync(request, BodyHandlers.discarding()))
                .flatMap(ReceiptTarget::accepted);
    }

    /** What the service will never take is parked at once; all else is tried again. */
    private static Mono<Void> accepted(HttpResponse<Void> response) {
        int status = response.statusCode();
        if (status / 100 == 2) {
            return Mono.empty();
        }
        boolean mayBeTakenLater = status / 100 != 4 || status == 408 || status == 409 || status == 429;
        return Mono.error(
                mayBeTakenLater
                        ? new IOException("the receipt service answered " + status)
                        : new PermanentFailure("the receipt service refused the receipt: " + status));
    }
}
