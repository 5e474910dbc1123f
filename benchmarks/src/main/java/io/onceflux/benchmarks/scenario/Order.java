package io.onceflux.benchmarks.scenario;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import java.io.UncheckedIOException;

/** The message: an order whose points are credited to its customer. */
public record Order(String orderId, String customerId, long points) {

    private static final ObjectReader READER = new ObjectMapper().readerFor(Order.class);
    private static final ObjectWriter WRITER = new ObjectMapper().writerFor(Order.class);

    /** What a message is identified by in every variant. */
    public String key() {
        return "order-completed:" + orderId;
    }

    public byte[] toJson() {
        try {
            return WRITER.writeValueAsBytes(this);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static Order fromJson(byte[] json) throws IOException {
        return READER.readValue(json);
    }
}
